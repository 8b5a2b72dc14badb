/* Design notes
 *
 * Sums (call paths, functions, edges, streams, the session) change with every block, and writing
 * them costs more than the block: with a row for each dirty path at each commit, most of what a
 * commit writes. So blocks are written at once, sums at most once in `sums_delay_ns` a session, and
 * later when many sessions wait. Nothing is lost by that, because sums follow from blocks:
 * sessions.unsummed_from_block names the first block that the rows do not count, in the same
 * transaction that stores it, and who writes such a session's sums without having held its call
 * graph all the time (held_sessions.c) replays its blocks from there on.
 * What no block tells again (profiles, gaps without a block) is written with its frame.
 *
 * Rows are written with their absolute values, and replaying is deterministic, so two writers that
 * both make the sums good write the same.
 *
 * A session whose sums cannot be made, because its rows cannot be read back, is set apart with the
 * reason (sessions.unsummed_because): its blocks go on being stored, nobody waits for it, and it is
 * tried again from time to time and when it ends, as somebody may have made its sums anew
 * (rebuild.c).
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
    MEND_REST = 9,      /* times as long as mending took, others come first */
    APART_S = 60,
    APART_REST = 99 /* times as long as trying in vain took; APART_S at least */
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_unreadable(sj_status status)
{
    return status == SJ_ECORRUPT || status == SJ_EVERSION || status == SJ_ENOTFOUND;
}

/* Adds a block to the call graph; nothing changes when the block cannot be read: `fault`. */
static sj_status replay_row(sj_store *store, sj_session_state *state, sqlite3_stmt *row,
                            sj_status *fault, sj_error *error)
{
    const uint32_t number = (uint32_t)sqlite3_column_int64(row, 0);
    const sj_slice bytes = {.data = sqlite3_column_blob(row, 1),
                            .size = (size_t)sqlite3_column_bytes(row, 1)};
    sj_block block;
    sj_block_summary summary = {0};
    sj_stream_state *stream = sj_session_find_stream(state, number);
    sj_status status =
        stream == NULL ? SJ_ECORRUPT : sj_block_decode(store->decoder, bytes, SJ_WANT_ALL, &block);
    if (status == SJ_OK && block.header.kind == SJ_BLOCK_CALLS) {
        sj_stack_context stack = {.store = store, .stream_id = stream->stream_id};
        status = sj_callgraph_apply(state->graph, &block, sj_store_stack_frames, &stack, &summary);
        if (status == SJ_ELIMIT) {
            sj_fail(error, status, "it has more than %u call paths", (unsigned)state->most_paths);
        }
    }
    if (status != SJ_OK) {
        *fault = is_unreadable(status) ? status : SJ_OK;
        return *fault != SJ_OK ? SJ_OK : status;
    }
    if (block.header.kind == SJ_BLOCK_CALLS) {
        SJ_TRY((state->is_anew ? sj_store_note_timeline : sj_store_note_timeline_paths)(
            store, state, stream->stream_id, &block, &summary, error));
    }
    sj_session_count_block(state, stream, &block, &summary, bytes.size);
    return SJ_OK;
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
    status = replay_row(store, state, sj_sql_row(sql, SJ_SQL_BLOCK_READ), &fault, error);
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

static sj_status read_anew(sj_store *store, sj_session_state *state, sj_error *error)
{
    sj_session_state *loaded = NULL;
    const bool has_all = state->unsummed_in_store == 0;
    sj_status status =
        sj_session_state_load(&store->sql, &state->id, state->most_paths, &loaded, error);
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
    if (state->late_count > 0 && from != 0) {
        SJ_TRY(sj_session_load_graph(&store->sql, state, error));
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

void sj_store_fall_behind(sj_session_state *state)
{
    sj_session_drop_graph(state);
    state->is_behind = true;
    state->unsummed_in_store = 1; /* where they begin is read anew, too */
}

sj_status sj_store_catch_up(sj_store *store, sj_session_state *state, sj_error *error)
{
    if (!state->is_behind) {
        return SJ_OK;
    }
    const sj_status status = read_anew(store, state, error);
    if (status != SJ_OK && status != SJ_ENOTFOUND) {
        sj_store_fall_behind(state);
    }
    return status;
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

static sj_status set_apart(sj_store *store, int64_t session_id, int64_t first_block,
                           const sj_error *why, sj_error *error)
{
    return sj_sql_run(&store->sql, SJ_SQL_SESSION_SET_APART, error, "iot", session_id,
                      first_block != 0 ? &first_block : NULL,
                      why->text[0] != '\0' ? why->text : "its sums contradict each other");
}

static bool waits_apart(sj_session_state *state, uint64_t now)
{
    if (state->is_apart && state->apart_until_ns == 0) { /* found so */
        state->apart_until_ns = now + APART_S * UINT64_C(1000000000);
    }
    return state->is_apart && !state->sum_now && now < state->apart_until_ns;
}

static sj_status note_unsummed(sj_store *store, sj_session_state *state, sj_error *error)
{
    const int64_t block = state->unsummed_block;
    state->unsummed_block = 0;
    return block == 0 ? SJ_OK
                      : sj_sql_run(&store->sql, SJ_SQL_SESSION_UNSUMMED, error, "ii",
                                   state->session_id, block);
}

/* Writes in a savepoint, so that what was written before it failed goes again. */
static sj_status try_to_write(sj_store *store, sj_session_state *state, sj_error *error)
{
    const uint64_t begun_ns = now_ns();
    sj_error why = {0};
    SJ_TRY(sj_sql_run(&store->sql, SJ_SQL_SAVEPOINT, error, ""));
    sj_status status = sj_store_write_session(store, state, &why);
    if (sj_store_is_own_fault(status)) {
        SJ_TRY(sj_sql_run(&store->sql, SJ_SQL_ROLLBACK_TO, error, ""));
        status = set_apart(store, state->session_id, state->unsummed_block, &why, error);
        const uint64_t least_ns = APART_S * UINT64_C(1000000000);
        const uint64_t rest_ns = (now_ns() - begun_ns) * APART_REST;
        sj_store_fall_behind(state);
        state->unsummed_block = 0;
        state->sum_now = false;
        state->is_apart = state->dirty = true;
        state->apart_until_ns = now_ns() + (rest_ns > least_ns ? rest_ns : least_ns);
    } else if (status != SJ_OK) {
        *error = why;
        return status;
    }
    SJ_TRY(status);
    return sj_sql_run(&store->sql, SJ_SQL_RELEASE, error, "");
}

sj_status sj_store_write_or_set_apart(sj_store *store, sj_session_state *state, sj_error *error)
{
    return waits_apart(state, now_ns()) ? note_unsummed(store, state, error)
                                        : try_to_write(store, state, error);
}

/* Finds the next session behind `*session_id` whose rows lack blocks, set apart or not.
 * SJ_ENOTFOUND: there is none. */
static sj_status find_unsummed(sj_store *store, bool with_apart, int64_t *session_id,
                               sj_session_id *id, sj_error *error)
{
    sj_statements *sql = &store->sql;
    *id = (sj_session_id){0};
    SJ_TRY(sj_sql_bind(sql, SJ_SQL_SESSION_UNSUMMED_NEXT, error, "ii", *session_id,
                       (int64_t)with_apart));
    SJ_TRY(sj_sql_step(sql, SJ_SQL_SESSION_UNSUMMED_NEXT, error));
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_SESSION_UNSUMMED_NEXT);
    if (sqlite3_column_bytes(row, 0) == (int)sizeof(id->bytes)) {
        memcpy(id->bytes, sqlite3_column_blob(row, 0), sizeof(id->bytes));
    }
    *session_id = sqlite3_column_int64(row, 1);
    sj_sql_reset(sql, SJ_SQL_SESSION_UNSUMMED_NEXT);
    return SJ_OK;
}

/* `*state` is NULL of one that cannot be loaded: it is set apart. */
static sj_status load_unsummed(sj_store *store, int64_t session_id, const sj_session_id *id,
                               sj_session_state **state, sj_error *error)
{
    const size_t known = store->session_count;
    sj_error why = {0};
    const sj_status status = sj_store_session(store, id->bytes, sizeof(id->bytes), state, &why);
    if (sj_store_is_own_fault(status)) {
        *state = NULL;
        return set_apart(store, session_id, 0, &why, error);
    }
    if (status != SJ_OK) {
        *error = why;
        return status;
    }
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
        const sj_status status = find_unsummed(store, false, &session_id, &id, error);
        if (status != SJ_OK) {
            return status == SJ_ENOTFOUND ? SJ_OK : status;
        }
        SJ_TRY(load_unsummed(store, session_id, &id, &state, error));
    }
    return SJ_OK;
}

/* Mends one session, also one that was set apart: this collector may be a newer one. SJ_ENOTFOUND:
 * none is left. */
static sj_status mend_session(sj_store *store, sj_error *error)
{
    sj_session_id id;
    sj_session_state *state = NULL;
    SJ_TRY(find_unsummed(store, true, &store->mended_to, &id, error));
    SJ_TRY(load_unsummed(store, store->mended_to, &id, &state, error));
    if (state != NULL && state->is_guest) { /* others are written when they are due */
        SJ_TRY(try_to_write(store, state, error));
    }
    sj_store_forget_sessions(store, true);
    return SJ_OK;
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

/* How many call paths have to be written with a session, about. */
static uint64_t count_waiting(const sj_session_state *state)
{
    size_t count = state->stored_nodes > UNKNOWN_PATHS ? state->stored_nodes : UNKNOWN_PATHS;
    if (state->graph != NULL) {
        (void)sj_callgraph_dirty(state->graph, &count);
    }
    return state->dirty && !state->is_apart ? count : 0;
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
        if (waits_apart(state, now) || (!state->sum_now && !is_due && delay != 0)) {
            SJ_TRY(note_unsummed(store, state, error));
            continue;
        }
        const bool was_behind = state->is_behind;
        late += !is_due ? 0 : all ? 1 : count_waiting(state);
        SJ_TRY(try_to_write(store, state, error));
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
        sqlite3_prepare_v2(reader,
                           "SELECT 1 FROM sessions WHERE unsummed_from_block IS NOT NULL"
                           " AND unsummed_because IS NULL",
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
