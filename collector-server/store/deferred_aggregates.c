/* Design notes
 *
 * Aggregates are call paths, functions, edges, streams and the session's totals. They change with
 * every block, and writing them costs more than writing the block. If each commit wrote all changed
 * aggregates, they would be most of the commit. So blocks are written at once. Aggregates are
 * written at most once per `aggregates_delay_ns` and session, and later if many sessions wait.
 *
 * The delay loses no data, because aggregates can be computed from blocks.
 * sessions.aggregates_valid_before_block names the first block that the rows do not count. The
 * transaction that stores the block sets it. A process without the session's complete call graph
 * (session_cache.c) replays the blocks from there on before it writes the aggregates. Data that is
 * in no block (profiles, gaps without a block) is written with its frame.
 *
 * Rows hold absolute values, and replaying is deterministic. So two writers that both recompute the
 * aggregates write the same.
 *
 * If the aggregates of a session cannot be computed, because its rows cannot be read back, the
 * session is quarantined with the reason (sessions.quarantine_reason). Its blocks are still stored,
 * and no other session waits for it. The store retries from time to time and when the session ends,
 * because a user may have rebuilt its aggregates (rebuild.c). */
#include "collector-server/store/store_internal.h"
#include "proto/base/array.h"
#include "proto/base/progress.h"

enum {
    PATHS_A_COMMIT = 1500, /* about how many due call paths one commit writes */
    ALL_A_COMMIT = 64,     /* sessions that one commit loads at most, or writes if all are due */
    /* The delay grows with the number of waiting call paths, so that writing takes at most a tenth
     * of a core. */
    SPREAD_NS_A_PATH = 100000,
    MOST_SPREAD_S = 30,
    UNKNOWN_PATHS = 256, /* assumed for a session with an unknown number of paths */
    QUARANTINE_S = 60,
    /* pause before a retry, as a multiple of the time of the failed attempt; at least
     * QUARANTINE_S */
    QUARANTINE_PAUSE = 99
};

static bool is_unreadable(sj_status status)
{
    return status == SJ_ECORRUPT || status == SJ_EVERSION || status == SJ_ENOTFOUND;
}

/* Adds a block to the call graph. If the block cannot be read, changes nothing and sets `fault`. */
static sj_status replay_row(sj_store *store, sj_session_state *state, int64_t block_id,
                            sqlite3_stmt *row, sj_status *fault, sj_error *error)
{
    const uint32_t number = (uint32_t)sqlite3_column_int64(row, 0);
    sj_slice bytes = {0};
    sj_block block;
    sj_block_summary summary = {0};
    sj_stream_state *stream = sj_session_find_stream(state, number);
    sj_status status = sj_block_files_get_columns(store->files, row, 1, 2, &bytes, error);
    if (status == SJ_OK) {
        status = stream == NULL ? SJ_ECORRUPT
                                : sj_block_decode(store->decoder, bytes, SJ_WANT_ALL, &block);
    }
    if (status == SJ_OK && block.header.kind == SJ_BLOCK_CALLS) {
        sj_stack_context stack = {.store = store, .state = state, .stream_id = stream->stream_id};
        sj_block united;
        SJ_TRY(sj_store_unite_functions(store, state, &block, &united));
        status = sj_callgraph_apply(state->graph, &united, sj_store_stack_frames, &stack, &summary);
        status = status == SJ_OK ? sj_call_estimates_add(&state->estimates, &united) : status;
        if (status == SJ_ELIMIT) {
            sj_fail(error, status, "it has more than %u call paths", (unsigned)state->most_paths);
        }
    }
    if (status != SJ_OK) {
        *fault = is_unreadable(status) ? status : SJ_OK;
        return *fault != SJ_OK ? SJ_OK : status;
    }
    if (block.header.kind == SJ_BLOCK_CALLS) {
        SJ_TRY((state->is_rebuild ? sj_store_note_timeline : sj_store_note_timeline_paths)(
            store, state, stream->stream_id, &block, &summary, error));
        if (state->is_rebuild) {
            SJ_TRY(sj_store_put_outline(store, block_id, stream->stream_id, &block.header,
                                        bytes.size, &summary, error));
            SJ_TRY(sj_store_note_open_calls(store, state, stream->stream_id, &block, error));
        }
    }
    sj_session_count_block(state, stream, &block, &summary, bytes.size);
    return sj_store_fold_rare_paths(store, state, error);
}

/* Adds a block to the call graph. Quarantines the block if it cannot be read. Does nothing if the
 * block was removed or quarantined. */
static sj_status replay_block(sj_store *store, sj_session_state *state, int64_t block_id,
                              sj_error *error)
{
    sj_statements *sql = &store->sql;
    SJ_TRY(SJ_START(sql, block_read, error, .block_id = block_id));
    sj_status status = sj_sql_step(sql, SJ_SQL_BLOCK_READ, error);
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND ? SJ_OK : status;
    }
    sj_status fault = SJ_OK;
    status = replay_row(store, state, block_id, sj_sql_row(sql, SJ_SQL_BLOCK_READ), &fault, error);
    sj_sql_reset(sql, SJ_SQL_BLOCK_READ);
    SJ_TRY(status);
    return fault == SJ_OK ? SJ_OK
                          : SJ_RUN(sql, block_quarantine, error, .block_id = block_id,
                                   .quarantined = sj_status_text(fault));
}

/* Lists the session's blocks from `from` on in state->uncounted_blocks. Reads them from the
 * database, because the state does not know blocks that were stored before it was loaded. */
static sj_status list_blocks(sj_store *store, sj_session_state *state, int64_t from,
                             sj_error *error)
{
    sj_statements *sql = &store->sql;
    state->uncounted_count = 0;
    SJ_TRY(SJ_START(sql, block_uncounted_list, error, .session_id = state->session_id,
                    .first_block = from));
    sj_block_uncounted_list_row row;
    sj_status status;
    while ((status = sj_next_block_uncounted_list(sql, &row, error)) == SJ_OK) {
        status = sj_array_reserve(&state->uncounted_blocks, &state->uncounted_capacity,
                                  state->uncounted_count, 1, sizeof(*state->uncounted_blocks));
        if (status != SJ_OK) {
            break;
        }
        state->uncounted_blocks[state->uncounted_count++] = row.block_id;
    }
    sj_sql_reset(sql, SJ_SQL_BLOCK_UNCOUNTED_LIST);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

static sj_status replay_blocks(sj_store *store, sj_session_state *state, int64_t from,
                               sj_error *error)
{
    sj_status status = SJ_OK;
    const sj_progress_work work = sj_progress_begin(state->uncounted_count);
    for (size_t i = 0; i < state->uncounted_count && status == SJ_OK; ++i) {
        if (state->uncounted_blocks[i] >= from) {
            status = replay_block(store, state, state->uncounted_blocks[i], error);
        }
        sj_progress_step(work);
    }
    sj_progress_end(work);
    return status;
}

static sj_status replay_missing(sj_store *store, sj_session_state *state, sj_error *error)
{
    sj_session_state *loaded = NULL;
    const bool has_all = state->stored_uncounted_from == 0;
    sj_status status =
        sj_session_state_load(&store->sql, &state->id, state->most_paths, &loaded, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, status, "the session has been removed");
    }
    SJ_TRY(status);
    sj_session_state_replace(state, loaded);
    state->dirty = true;
    /* If the row names no block, only blocks of the open batch can be uncounted. */
    const int64_t from = state->stored_uncounted_from != 0 ? state->stored_uncounted_from
                                                           : state->first_uncounted_block;
    if (!has_all && from != 0) {
        SJ_TRY(list_blocks(store, state, from, error));
    }
    if (state->uncounted_count > 0 && from != 0) {
        SJ_TRY(sj_session_load_graph(&store->sql, state, error));
    }
    if (from != 0) {
        SJ_TRY(replay_blocks(store, state, from, error));
    }
    /* the list is complete from here on */
    state->stored_uncounted_from = 0;
    return SJ_OK;
}

void sj_store_invalidate(sj_session_state *state)
{
    sj_session_drop_graph(state);
    state->is_invalid = true;
    state->stored_uncounted_from = 1; /* the list of uncounted blocks is incomplete */
}

sj_status sj_store_rebuild_aggregates(sj_store *store, sj_session_state *state, sj_error *error)
{
    if (!state->is_invalid) {
        return SJ_OK;
    }
    const sj_status status = replay_missing(store, state, error);
    if (status != SJ_OK && status != SJ_ENOTFOUND) {
        sj_store_invalidate(state);
    }
    return status;
}

sj_status sj_store_write_session(sj_store *store, sj_session_state *state, sj_error *error)
{
    const sj_status status = sj_store_rebuild_aggregates(store, state, error);
    /* the session was removed meanwhile, so there is nothing to write */
    if (status == SJ_ENOTFOUND) {
        sj_session_drop_graph(state);
        state->is_invalid = false;
    } else if (status != SJ_OK) {
        return status;
    }
    return sj_session_flush(&store->sql, state, error);
}

static sj_status quarantine_session(sj_store *store, int64_t session_id, int64_t first_block,
                                    const sj_error *why, sj_error *error)
{
    return SJ_RUN(&store->sql, session_quarantine, error, .session_id = session_id,
                  .first_block = first_block != 0 ? &first_block : NULL,
                  .reason =
                      why->text[0] != '\0' ? why->text : "its aggregates contradict each other");
}

static bool waits_in_quarantine(sj_session_state *state, uint64_t now)
{
    if (state->is_quarantined && state->quarantined_until_ns == 0) { /* loaded in quarantine */
        state->quarantined_until_ns = now + QUARANTINE_S * UINT64_C(1000000000);
    }
    return state->is_quarantined && !state->write_now && now < state->quarantined_until_ns;
}

static sj_status mark_stale(sj_store *store, sj_session_state *state, sj_error *error)
{
    const int64_t block = state->first_uncounted_block;
    state->first_uncounted_block = 0;
    return block == 0 ? SJ_OK
                      : SJ_RUN(&store->sql, session_stale, error, .session_id = state->session_id,
                               .aggregates_valid_before_block = block);
}

/* Writes the aggregates of a session. If the session itself prevents that, quarantines the session
 * and returns SJ_OK. A rollback to a savepoint then removes the rows that were already
 * written. */
static sj_status try_to_write(sj_store *store, sj_session_state *state, sj_error *error)
{
    const uint64_t begun_ns = sj_store_now_ns();
    sj_error why = {0};
    const sj_status seen = sj_store_see_session(store, state, error);
    if (seen == SJ_ENOTFOUND) { /* the session was removed, and its ids may be reused */
        state->dirty = state->write_now = false;
    }
    if (seen != SJ_OK) {
        return seen == SJ_ENOTFOUND ? SJ_OK : seen;
    }
    SJ_TRY(sj_run_savepoint(&store->sql, error));
    sj_status status = sj_store_write_session(store, state, &why);
    if (sj_store_is_own_fault(status)) {
        SJ_TRY(sj_run_rollback_to(&store->sql, error));
        status =
            quarantine_session(store, state->session_id, state->first_uncounted_block, &why, error);
        const uint64_t least_ns = QUARANTINE_S * UINT64_C(1000000000);
        const uint64_t rest_ns = (sj_store_now_ns() - begun_ns) * QUARANTINE_PAUSE;
        sj_store_invalidate(state);
        state->first_uncounted_block = 0;
        state->write_now = false;
        state->is_quarantined = state->dirty = true;
        state->quarantined_until_ns = sj_store_now_ns() + (rest_ns > least_ns ? rest_ns : least_ns);
    } else if (status != SJ_OK) {
        *error = why;
        return status;
    }
    SJ_TRY(status);
    return sj_run_release(&store->sql, error);
}

sj_status sj_store_write_or_quarantine(sj_store *store, sj_session_state *state, sj_error *error)
{
    return waits_in_quarantine(state, sj_store_now_ns()) ? mark_stale(store, state, error)
                                                         : try_to_write(store, state, error);
}

/* Finds the next session after `*session_id` whose rows lack blocks. Includes quarantined sessions
 * if `with_quarantined`. Returns SJ_ENOTFOUND if there is none. */
static sj_status find_stale(sj_store *store, bool with_quarantined, int64_t *session_id,
                            sj_session_id *id, sj_error *error)
{
    sj_statements *sql = &store->sql;
    *id = (sj_session_id){0};
    sj_session_stale_next_row row;
    SJ_TRY(SJ_FIND(sql, session_stale_next, &row, error, .after_session_id = *session_id,
                   .with_quarantined = with_quarantined));
    *session_id = row.session_id;
    if (row.uuid.size == sizeof(id->bytes)) {
        memcpy(id->bytes, row.uuid.data, sizeof(id->bytes));
    }
    sj_sql_reset(sql, SJ_SQL_SESSION_STALE_NEXT);
    return SJ_OK;
}

/* Loads the state of a session. If it cannot be loaded, quarantines the session and sets `*state`
 * to NULL. */
static sj_status load_stale(sj_store *store, int64_t session_id, const sj_session_id *id,
                            sj_session_state **state, sj_error *error)
{
    const size_t known = store->session_count;
    sj_error why = {0};
    const sj_status status = sj_store_session(store, id->bytes, sizeof(id->bytes), state, &why);
    if (sj_store_is_own_fault(status)) {
        *state = NULL;
        return quarantine_session(store, session_id, 0, &why, error);
    }
    if (status != SJ_OK) {
        *error = why;
        return status;
    }
    (*state)->is_borrowed = (*state)->is_borrowed || store->session_count > known;
    /* another process stored the blocks that this state does not know */
    if (!(*state)->dirty) {
        (*state)->is_invalid = true;
        (*state)->stored_uncounted_from = 1;
    }
    (*state)->dirty = true;
    return SJ_OK;
}

sj_status sj_store_load_stale(sj_store *store, sj_error *error)
{
    int64_t session_id = 0;
    for (unsigned loaded = 0; loaded < ALL_A_COMMIT; ++loaded) {
        sj_session_id id;
        sj_session_state *state = NULL;
        const sj_status status = find_stale(store, false, &session_id, &id, error);
        if (status != SJ_OK) {
            return status == SJ_ENOTFOUND ? SJ_OK : status;
        }
        SJ_TRY(load_stale(store, session_id, &id, &state, error));
    }
    return SJ_OK;
}

sj_status sj_store_recover_next(sj_store *store, sj_error *error)
{
    sj_session_id id;
    sj_session_state *state = NULL;
    SJ_TRY(find_stale(store, true, &store->recovered_to, &id, error));
    SJ_TRY(load_stale(store, store->recovered_to, &id, &state, error));
    /* sessions that are not borrowed are written when due */
    if (state != NULL && state->is_borrowed) {
        SJ_TRY(try_to_write(store, state, error));
    }
    sj_store_forget_sessions(store, true);
    return SJ_OK;
}

/* Estimates how many call paths have to be written with a session. */
static uint64_t count_waiting(const sj_session_state *state)
{
    size_t count = state->stored_nodes > UNKNOWN_PATHS ? state->stored_nodes : UNKNOWN_PATHS;
    if (state->graph != NULL) {
        (void)sj_callgraph_dirty(state->graph, &count);
    }
    return state->dirty && !state->is_quarantined ? count : 0;
}

static uint64_t delay_ns(const sj_store *store)
{
    uint64_t spread_ns = 0;
    for (size_t i = 0; i < store->session_count; ++i) {
        spread_ns += count_waiting(store->sessions[i]) * SPREAD_NS_A_PATH;
    }
    const uint64_t most_ns = MOST_SPREAD_S * UINT64_C(1000000000);
    return store->aggregates_delay_ns == 0
               ? 0
               : store->aggregates_delay_ns + (spread_ns < most_ns ? spread_ns : most_ns);
}

sj_status sj_store_write_aggregates(sj_store *store, bool all, sj_error *error)
{
    const uint64_t now = sj_store_now_ns();
    const uint64_t delay = delay_ns(store);
    uint64_t late = 0; /* number of sessions (if `all`) or call paths that this call has written
                        * because they were due */
    for (size_t i = 0; i < store->session_count; ++i) {
        sj_session_state *state = store->sessions[i];
        if (!state->dirty) {
            continue;
        }
        if (state->dirty_since_ns == 0) {
            state->dirty_since_ns = now;
        }
        const bool is_due = all ? late < ALL_A_COMMIT
                                : now - state->dirty_since_ns >= delay && late < PATHS_A_COMMIT;
        if (waits_in_quarantine(state, now) || (!state->write_now && !is_due && delay != 0)) {
            SJ_TRY(mark_stale(store, state, error));
            continue;
        }
        const bool was_behind = state->is_invalid;
        late += !is_due ? 0 : all ? 1 : count_waiting(state);
        SJ_TRY(try_to_write(store, state, error));
        store->held_bytes += was_behind ? sj_session_state_bytes(state) : 0;
        if (was_behind && sj_store_holds_too_much(store, state)) {
            sj_store_forget_graph(store, state);
        }
    }
    return SJ_OK;
}
