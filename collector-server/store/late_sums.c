/* Design notes
 *
 * Sums (call paths, functions, edges, streams, the session) change with every block, and writing
 * them costs more than the block: with a row for each dirty path at each commit, most of what a
 * commit writes. So blocks are written at once, sums at most once in `sums_delay_ns` a session, and
 * later when many sessions wait. Nothing is lost by that, because sums follow from blocks:
 * sessions.unsummed_from_block names the first block that the rows do not count, in the same
 * transaction that stores it, and who writes such a session's sums without having held its call
 * graph all the time (held_sessions.c) replays its blocks from there on.
 * What no block tells again (profiles, gaps without a block) is written at once, `sum_now`.
 *
 * Rows are written with their absolute values, and replaying is deterministic, so two writers that
 * both make the sums good write the same.
 *
 * What a killed collector put off must not keep the next one from listening: it is made good
 * between batches, in a tenth of the time, or at once when nothing else is to be done
 * (sj_store_maintain). */
#include "collector-server/store/store_internal.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum {
    PATHS_A_COMMIT = 1500, /* about so many call paths one commit writes because they are due */
    ALL_A_COMMIT = 64,     /* sessions that one commit writes when nothing else is to be done */
    /* The more call paths wait, the longer each does: writing takes a tenth of a core at most. */
    SPREAD_NS_A_PATH = 100000,
    MOST_SPREAD_S = 30,
    UNKNOWN_PATHS = 256, /* of a session whose paths nobody has counted */
    QUIET_S = 5,         /* a living collector has written all sums by then */
    MEND_SLICE_MS = 10,
    IDLE_SLICE_MS = 50, /* so long at most a frame waits that comes when nothing was to be done */
    MEND_REST = 9       /* times as long as mending took, others come first */
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static sj_status replay_row(sj_store *store, sj_session_state *state, sqlite3_stmt *row,
                            sj_error *error)
{
    const uint32_t number = (uint32_t)sqlite3_column_int64(row, 0);
    const sj_slice bytes = {.data = sqlite3_column_blob(row, 1),
                            .size = (size_t)sqlite3_column_bytes(row, 1)};
    sj_block block;
    sj_block_summary summary = {0};
    sj_stream_state *stream = sj_session_find_stream(state, number);
    if (stream == NULL) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(sj_block_decode(store->decoder, bytes, SJ_WANT_ALL, &block));
    if (block.header.kind == SJ_BLOCK_CALLS) {
        sj_stack_context stack = {.store = store, .stream_id = stream->stream_id};
        SJ_TRY(sj_session_load_graph(&store->sql, state, error));
        SJ_TRY(sj_callgraph_apply(state->graph, &block, sj_store_stack_frames, &stack, &summary));
        SJ_TRY((state->is_anew ? sj_store_note_timeline : sj_store_note_timeline_paths)(
            store, state, stream->stream_id, &block, &summary, error));
    }
    sj_session_count_block(state, stream, &block, &summary, bytes.size);
    return SJ_OK;
}

static bool is_unreadable(sj_status status)
{
    return status == SJ_ECORRUPT || status == SJ_EVERSION || status == SJ_ENOTFOUND;
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
    status = replay_row(store, state, sj_sql_row(sql, SJ_SQL_BLOCK_READ), error);
    sj_sql_reset(sql, SJ_SQL_BLOCK_READ);
    return is_unreadable(status) ? sj_sql_run(sql, SJ_SQL_BLOCK_QUARANTINE, error, "it", block_id,
                                              sj_status_text(status))
                                 : status;
}

/* Blocks that were stored before the state was loaded are found in the database. */
static sj_status list_blocks(sj_store *store, sj_session_state *state, int64_t from,
                             sj_error *error)
{
    sj_statements *sql = &store->sql;
    state->late_count = 0;
    SJ_TRY(sj_sql_bind(sql, SJ_SQL_BLOCK_UNSUMMED_LIST, error, "ii", state->session_id, from));
    sj_status status;
    while ((status = sj_sql_step(sql, SJ_SQL_BLOCK_UNSUMMED_LIST, error)) == SJ_OK) {
        status = sj_array_grow((void **)&state->late_blocks, &state->late_capacity,
                               state->late_count, sizeof(*state->late_blocks));
        if (status != SJ_OK) {
            break;
        }
        state->late_blocks[state->late_count++] =
            sqlite3_column_int64(sj_sql_row(sql, SJ_SQL_BLOCK_UNSUMMED_LIST), 0);
    }
    sj_sql_reset(sql, SJ_SQL_BLOCK_UNSUMMED_LIST);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

sj_status sj_store_catch_up(sj_store *store, sj_session_state *state, sj_error *error)
{
    sj_session_state *loaded = NULL;
    if (!state->is_behind) {
        return SJ_OK;
    }
    const bool has_all = state->unsummed_in_store == 0;
    sj_status status = sj_session_state_load(&store->sql, &state->id, &loaded, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, status, "the session has been removed");
    }
    SJ_TRY(status);
    sj_session_state_replace(state, loaded);
    state->dirty = true;
    /* its row knows of the blocks of this batch only after it */
    const int64_t from =
        state->unsummed_in_store != 0 ? state->unsummed_in_store : state->unsummed_block;
    if (!has_all && from != 0) {
        SJ_TRY(list_blocks(store, state, from, error));
    }
    for (size_t i = 0; i < state->late_count && from != 0; ++i) {
        if (state->late_blocks[i] >= from) {
            SJ_TRY(replay_block(store, state, state->late_blocks[i], error));
        }
    }
    /* the list has all from here on; what it lacked before has been listed */
    state->unsummed_in_store = 0;
    return SJ_OK;
}

sj_status sj_store_write_session(sj_store *store, sj_session_state *state, sj_error *error)
{
    const sj_status status = sj_store_catch_up(store, state, error);
    if (status == SJ_ENOTFOUND) { /* removed meanwhile: nothing is left to be written */
        sj_session_drop_graph(state);
        state->is_behind = false;
    } else if (status != SJ_OK) {
        return status;
    }
    return sj_session_flush(&store->sql, state, error);
}

/* Finds the next session behind `*session_id` whose rows lack blocks. SJ_ENOTFOUND: there is none.
 */
static sj_status find_unsummed(sj_store *store, int64_t *session_id, sj_session_id *id,
                               sj_error *error)
{
    sj_statements *sql = &store->sql;
    *id = (sj_session_id){0};
    SJ_TRY(sj_sql_bind(sql, SJ_SQL_SESSION_UNSUMMED_NEXT, error, "i", *session_id));
    SJ_TRY(sj_sql_step(sql, SJ_SQL_SESSION_UNSUMMED_NEXT, error));
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_SESSION_UNSUMMED_NEXT);
    if (sqlite3_column_bytes(row, 0) == (int)sizeof(id->bytes)) {
        memcpy(id->bytes, sqlite3_column_blob(row, 0), sizeof(id->bytes));
    }
    *session_id = sqlite3_column_int64(row, 1);
    sj_sql_reset(sql, SJ_SQL_SESSION_UNSUMMED_NEXT);
    return SJ_OK;
}

static sj_status load_unsummed(sj_store *store, const sj_session_id *id, sj_session_state **state,
                               sj_error *error)
{
    const size_t known = store->session_count;
    SJ_TRY(sj_store_session(store, id->bytes, sizeof(id->bytes), state, error));
    (*state)->is_guest = (*state)->is_guest || store->session_count > known;
    /* what memory does not know of was stored by somebody else */
    if (!(*state)->dirty) {
        (*state)->is_behind = true;
        (*state)->unsummed_in_store = 1;
    }
    (*state)->dirty = true;
    return SJ_OK;
}

sj_status sj_store_load_unsummed(sj_store *store, sj_error *error)
{
    int64_t session_id = 0;
    for (unsigned loaded = 0; loaded < ALL_A_COMMIT; ++loaded) {
        sj_session_id id;
        sj_session_state *state = NULL;
        const sj_status status = find_unsummed(store, &session_id, &id, error);
        if (status != SJ_OK) {
            return status == SJ_ENOTFOUND ? SJ_OK : status;
        }
        SJ_TRY(load_unsummed(store, &id, &state, error));
    }
    return SJ_OK;
}

/* Mends one session in a savepoint: one that cannot be mended is passed over, and harms no other.
 * SJ_ENOTFOUND: none is left. */
static sj_status mend_session(sj_store *store, sj_error *error)
{
    sj_session_id id;
    sj_session_state *state = NULL;
    sj_error ignored;
    SJ_TRY(find_unsummed(store, &store->mended_to, &id, error));
    SJ_TRY(sj_sql_run(&store->sql, SJ_SQL_SAVEPOINT, error, ""));
    sj_status status = load_unsummed(store, &id, &state, error);
    if (status == SJ_OK && state->is_guest) { /* others are written when they are due */
        status = sj_store_write_session(store, state, error);
    }
    if (status == SJ_EFULL || status == SJ_EIO || status == SJ_ENOMEM || status == SJ_EAGAIN) {
        return status; /* not its fault */
    }
    if (status != SJ_OK) {
        SJ_TRY(sj_sql_run(&store->sql, SJ_SQL_ROLLBACK_TO, &ignored, ""));
    }
    sj_store_forget_sessions(store, true);
    return sj_sql_run(&store->sql, SJ_SQL_RELEASE, &ignored, "");
}

bool sj_store_mend_some(sj_store *store, bool is_idle)
{
    const uint64_t slice_ns = (is_idle ? IDLE_SLICE_MS : MEND_SLICE_MS) * UINT64_C(1000000);
    const uint64_t begun_ns = now_ns();
    const int64_t before = store->mended_to;
    sj_error ignored; /* tried again after a while */
    if (sj_store_begin(store, &ignored) != SJ_OK) {
        return false;
    }
    sj_status status;
    do {
        status = mend_session(store, &ignored);
    } while (status == SJ_OK && now_ns() - begun_ns < slice_ns);
    const bool is_done = status == SJ_ENOTFOUND;
    if (status == SJ_OK || is_done) {
        status = sj_store_commit(store, &ignored);
    } else {
        sj_store_rollback(store);
    }
    if (status == SJ_OK) {
        store->has_leftovers = !is_done;
    } else {
        store->mended_to = before; /* what was written has gone again */
    }
    const uint64_t now = now_ns();
    store->next_mend_ns = now + (now - begun_ns) * MEND_REST;
    return status == SJ_OK;
}

void sj_store_mend(sj_store *store)
{
    if (store->has_leftovers && !store->in_batch && now_ns() >= store->next_mend_ns) {
        (void)sj_store_mend_some(store, false);
    }
}

static sj_status note_unsummed(sj_store *store, sj_session_state *state, sj_error *error)
{
    const int64_t block = state->unsummed_block;
    state->unsummed_block = 0;
    return block == 0 ? SJ_OK
                      : sj_sql_run(&store->sql, SJ_SQL_SESSION_UNSUMMED, error, "ii",
                                   state->session_id, block);
}

/* How many call paths have to be written with a session, about. */
static uint64_t count_waiting(const sj_session_state *state)
{
    size_t count = state->stored_nodes > UNKNOWN_PATHS ? state->stored_nodes : UNKNOWN_PATHS;
    if (state->graph != NULL) {
        (void)sj_callgraph_dirty(state->graph, &count);
    }
    return state->dirty ? count : 0;
}

static uint64_t delay_ns(const sj_store *store)
{
    uint64_t spread_ns = 0;
    for (size_t i = 0; i < store->session_count; ++i) {
        spread_ns += count_waiting(store->sessions[i]) * SPREAD_NS_A_PATH;
    }
    const uint64_t most_ns = MOST_SPREAD_S * UINT64_C(1000000000);
    return store->sums_delay_ns == 0
               ? 0
               : store->sums_delay_ns + (spread_ns < most_ns ? spread_ns : most_ns);
}

sj_status sj_store_write_sums(sj_store *store, bool all, sj_error *error)
{
    const uint64_t now = now_ns();
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
        if (!state->sum_now && !is_due && delay != 0) {
            SJ_TRY(note_unsummed(store, state, error));
            continue;
        }
        const bool was_behind = state->is_behind;
        late += !is_due ? 0 : all ? 1 : count_waiting(state);
        SJ_TRY(sj_store_write_session(store, state, error));
        store->held_bytes += was_behind ? sj_session_state_bytes(state) : 0;
        if (was_behind && sj_store_holds_too_much(store, state)) {
            sj_store_forget_graph(store, state);
        }
    }
    return SJ_OK;
}

static bool has_unsummed(sqlite3 *reader)
{
    sqlite3_stmt *statement = NULL;
    const bool found =
        sqlite3_prepare_v2(reader, "SELECT 1 FROM sessions WHERE unsummed_from_block IS NOT NULL",
                           -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW;
    sqlite3_finalize(statement);
    return found;
}

static bool is_quiet(const char *path, const char *suffix)
{
    char name[4096];
    struct stat status;
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &status) != 0 || time(NULL) - status.st_mtime >= QUIET_S;
}

sj_status sj_store_settle(const char *path, sqlite3 *reader, sj_error *error)
{
    const sj_store_options options = {.path = path};
    sj_store *store = NULL;
    if (!has_unsummed(reader) || !is_quiet(path, "") || !is_quiet(path, "-wal")) {
        return SJ_OK;
    }
    SJ_TRY(sj_store_open(&options, &store, error));
    sj_store_close(store);
    return SJ_OK;
}
