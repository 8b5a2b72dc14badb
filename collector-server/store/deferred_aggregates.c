/* Design notes
 *
 * Aggregates (call paths, functions, edges, streams, the session) change with every block, and
 * writing them costs more than the block: with a row for each dirty path at each commit, most of
 * what a commit writes. So blocks are written at once, aggregates at most once in
 * `aggregates_delay_ns` a session, and later when many sessions wait. Nothing is lost by that,
 * because aggregates follow from blocks: sessions.aggregates_valid_before_block names the first
 * block that the rows do not count, in the same transaction that stores it, and a process that
 * writes such a session's aggregates without having held its call graph all the time
 * (session_cache.c) replays its blocks from there on. What no block holds (profiles, gaps without a
 * block) is written with its frame.
 *
 * Rows are written with their absolute values, and replaying is deterministic, so two writers that
 * both recompute the aggregates write the same.
 *
 * A session whose aggregates cannot be computed, because its rows cannot be read back, is
 * quarantined with the reason (sessions.quarantine_reason): its blocks go on being stored, nobody
 * waits for it, and it is tried again from time to time and when it ends, as somebody may have
 * rebuilt its aggregates (rebuild.c). */
#include "collector-server/store/store_internal.h"
#include "proto/base/array.h"
#include "proto/base/progress.h"

enum {
    PATHS_A_COMMIT = 1500, /* about so many call paths one commit writes because they are due */
    ALL_A_COMMIT = 64,     /* sessions that one commit writes when nothing else is to be done */
    /* The more call paths wait, the longer each does: writing takes a tenth of a core at most. */
    SPREAD_NS_A_PATH = 100000,
    MOST_SPREAD_S = 30,
    UNKNOWN_PATHS = 256, /* of a session whose paths nobody has counted */
    QUARANTINE_S = 60,
    QUARANTINE_PAUSE = 99 /* times as long as trying in vain took; QUARANTINE_S at least */
};

static bool is_unreadable(sj_status status)
{
    return status == SJ_ECORRUPT || status == SJ_EVERSION || status == SJ_ENOTFOUND;
}

/* Adds a block to the call graph; nothing changes when the block cannot be read: `fault`. */
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
        }
    }
    sj_session_count_block(state, stream, &block, &summary, bytes.size);
    return sj_store_fold_rare_paths(store, state, error);
}

static sj_status replay_block(sj_store *store, sj_session_state *state, int64_t block_id,
                              sj_error *error)
{
    sj_statements *sql = &store->sql;
    SJ_TRY(sj_sql_bind(sql, SJ_SQL_BLOCK_READ, error, "i", block_id));
    sj_status status = sj_sql_step(sql, SJ_SQL_BLOCK_READ, error);
    if (status != SJ_OK) { /* none: removed or quarantined */
        return status == SJ_ENOTFOUND ? SJ_OK : status;
    }
    sj_status fault = SJ_OK;
    status = replay_row(store, state, block_id, sj_sql_row(sql, SJ_SQL_BLOCK_READ), &fault, error);
    sj_sql_reset(sql, SJ_SQL_BLOCK_READ);
    SJ_TRY(status);
    return fault == SJ_OK ? SJ_OK
                          : sj_sql_run(sql, SJ_SQL_BLOCK_QUARANTINE, error, "it", block_id,
                                       sj_status_text(fault));
}

/* Blocks that were stored before the state was loaded are found in the database. */
static sj_status list_blocks(sj_store *store, sj_session_state *state, int64_t from,
                             sj_error *error)
{
    sj_statements *sql = &store->sql;
    state->uncounted_count = 0;
    SJ_TRY(sj_sql_bind(sql, SJ_SQL_BLOCK_UNCOUNTED_LIST, error, "ii", state->session_id, from));
    sj_status status;
    while ((status = sj_sql_step(sql, SJ_SQL_BLOCK_UNCOUNTED_LIST, error)) == SJ_OK) {
        status = sj_array_reserve(&state->uncounted_blocks, &state->uncounted_capacity,
                                  state->uncounted_count, 1, sizeof(*state->uncounted_blocks));
        if (status != SJ_OK) {
            break;
        }
        state->uncounted_blocks[state->uncounted_count++] =
            sqlite3_column_int64(sj_sql_row(sql, SJ_SQL_BLOCK_UNCOUNTED_LIST), 0);
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
    /* its row knows of the blocks of this batch only after it */
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
    /* the list has all from here on; what it lacked before has been listed */
    state->stored_uncounted_from = 0;
    return SJ_OK;
}

void sj_store_invalidate(sj_session_state *state)
{
    sj_session_drop_graph(state);
    state->is_invalid = true;
    state->stored_uncounted_from = 1; /* where they begin is read anew, too */
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
    if (status == SJ_ENOTFOUND) { /* removed meanwhile: nothing is left to be written */
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
    return sj_sql_run(&store->sql, SJ_SQL_SESSION_QUARANTINE, error, "iot", session_id,
                      first_block != 0 ? &first_block : NULL,
                      why->text[0] != '\0' ? why->text : "its aggregates contradict each other");
}

static bool waits_in_quarantine(sj_session_state *state, uint64_t now)
{
    if (state->is_quarantined && state->quarantined_until_ns == 0) { /* found so */
        state->quarantined_until_ns = now + QUARANTINE_S * UINT64_C(1000000000);
    }
    return state->is_quarantined && !state->write_now && now < state->quarantined_until_ns;
}

static sj_status mark_stale(sj_store *store, sj_session_state *state, sj_error *error)
{
    const int64_t block = state->first_uncounted_block;
    state->first_uncounted_block = 0;
    return block == 0 ? SJ_OK
                      : sj_sql_run(&store->sql, SJ_SQL_SESSION_STALE, error, "ii",
                                   state->session_id, block);
}

/* Writes in a savepoint, so that what was written before it failed goes again. */
static sj_status try_to_write(sj_store *store, sj_session_state *state, sj_error *error)
{
    const uint64_t begun_ns = sj_store_now_ns();
    sj_error why = {0};
    const sj_status seen = sj_store_see_session(store, state, error);
    if (seen == SJ_ENOTFOUND) { /* its ids may be another's */
        state->dirty = state->write_now = false;
    }
    if (seen != SJ_OK) {
        return seen == SJ_ENOTFOUND ? SJ_OK : seen;
    }
    SJ_TRY(sj_sql_run(&store->sql, SJ_SQL_SAVEPOINT, error, ""));
    sj_status status = sj_store_write_session(store, state, &why);
    if (sj_store_is_own_fault(status)) {
        SJ_TRY(sj_sql_run(&store->sql, SJ_SQL_ROLLBACK_TO, error, ""));
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
    return sj_sql_run(&store->sql, SJ_SQL_RELEASE, error, "");
}

sj_status sj_store_write_or_quarantine(sj_store *store, sj_session_state *state, sj_error *error)
{
    return waits_in_quarantine(state, sj_store_now_ns()) ? mark_stale(store, state, error)
                                                         : try_to_write(store, state, error);
}

/* Finds the next session behind `*session_id` whose rows lack blocks, quarantined or not.
 * SJ_ENOTFOUND: there is none. */
static sj_status find_stale(sj_store *store, bool with_quarantined, int64_t *session_id,
                            sj_session_id *id, sj_error *error)
{
    sj_statements *sql = &store->sql;
    *id = (sj_session_id){0};
    SJ_TRY(sj_sql_bind(sql, SJ_SQL_SESSION_STALE_NEXT, error, "ii", *session_id,
                       (int64_t)with_quarantined));
    SJ_TRY(sj_sql_step(sql, SJ_SQL_SESSION_STALE_NEXT, error));
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_SESSION_STALE_NEXT);
    if (sqlite3_column_bytes(row, 0) == (int)sizeof(id->bytes)) {
        memcpy(id->bytes, sqlite3_column_blob(row, 0), sizeof(id->bytes));
    }
    *session_id = sqlite3_column_int64(row, 1);
    sj_sql_reset(sql, SJ_SQL_SESSION_STALE_NEXT);
    return SJ_OK;
}

/* `*state` is NULL of one that cannot be loaded: it is quarantined. */
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
    /* what memory does not know of was stored by somebody else */
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
    if (state != NULL && state->is_borrowed) { /* others are written when they are due */
        SJ_TRY(try_to_write(store, state, error));
    }
    sj_store_forget_sessions(store, true);
    return SJ_OK;
}

/* How many call paths have to be written with a session, about. */
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
    uint64_t late = 0; /* sessions, or paths */
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
