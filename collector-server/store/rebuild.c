/* Rebuilds the aggregates of a session from its blocks. Deletes them, and recomputes them like
 * those of a killed collector (deferred_aggregates.c). */
#include "collector-server/store/database.h"
#include "collector-server/store/store_internal.h"

#include "collector-server/store/verify.h"
#include "schema/queries/checks/rebuild.h"

#include <stdio.h>
#include <string.h>

static sj_status get_session(sj_store *store, int64_t session_id, uint8_t uuid[16], sj_error *error)
{
    sqlite3_stmt *row = NULL;
    sj_status status = SJ_OK;
    if (sqlite3_prepare_v2(store->database,
                           "SELECT uuid, EXISTS (SELECT 1 FROM profiles p WHERE p.session_id ="
                           " s.session_id) FROM sessions s WHERE session_id = ?1",
                           -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "%s", sqlite3_errmsg(store->database));
    }
    sqlite3_bind_int64(row, 1, session_id);
    if (sqlite3_step(row) != SQLITE_ROW || sqlite3_column_bytes(row, 0) != 16) {
        status = sj_fail(error, SJ_ENOTFOUND, "there is no session %lld", (long long)session_id);
    } else if (sqlite3_column_int(row, 1) != 0) {
        status = sj_fail(error, SJ_EUNSUPPORTED,
                         "session %lld has profiles, whose sums no block contains",
                         (long long)session_id);
    } else {
        memcpy(uuid, sqlite3_column_blob(row, 0), 16);
    }
    sqlite3_finalize(row);
    return status;
}

sj_status sj_store_rebuild_in_batch(sj_store *store, int64_t session_id, sj_error *error)
{
    char sql[2048];
    uint8_t uuid[16];
    sj_session_state *state = NULL;
    SJ_TRY(get_session(store, session_id, uuid, error));
    snprintf(sql, sizeof(sql), sj_rebuild_forget_sql, (long long)session_id);
    if (sqlite3_exec(store->database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return sj_fail(error, sj_database_status(sqlite3_errcode(store->database)), "%s",
                       sqlite3_errmsg(store->database));
    }
    sj_store_forget_sessions(store, false); /* the cached states are no longer valid */
    SJ_TRY(sj_store_session(store, uuid, sizeof(uuid), &state, error));
    state->is_rebuild = true;
    return sj_store_write_session(store, state, error);
}

sj_status sj_store_rebuild(sj_store *store, int64_t session_id, sj_error *error)
{
    SJ_TRY(sj_store_begin(store, error));
    const sj_status status = sj_store_rebuild_in_batch(store, session_id, error);
    if (status != SJ_OK) {
        sj_store_rollback(store);
        return status;
    }
    return sj_store_commit(store, error);
}

/* Ends the streams of a session that the device has ended. The blocks that end them count as sent,
 * as at the end of the session. */
static sj_status end_streams(sj_store *store, int64_t session_id, sj_error *error)
{
    uint8_t uuid[16];
    uint32_t ended = 0;
    int64_t has_end = 0;
    sj_session_state *state = NULL;
    SJ_TRY(sj_sql_number(store->database, sj_rebuild_has_end_sql, SJ_SQL_INTS(session_id), &has_end,
                         error));
    if (has_end == 0) {
        return SJ_OK;
    }
    SJ_TRY(get_session(store, session_id, uuid, error));
    SJ_TRY(sj_store_session(store, uuid, sizeof(uuid), &state, error));
    SJ_TRY(sj_store_end_streams(store, state, &ended, error));
    SJ_TRY(sj_store_session(store, uuid, sizeof(uuid), &state, error));
    SJ_TRY(sj_sql_each(store->database, sj_rebuild_sent_sql, SJ_SQL_INTS(session_id, ended), NULL,
                       NULL, error));
    return sj_store_write_session(store, state, error);
}

sj_status sj_store_rebuild_changed(sqlite3 *database, int64_t session_id, sj_error *error)
{
    sj_store *store = NULL;
    SJ_TRY(sj_store_borrow(database, &store, error));
    sj_status status = sj_store_rebuild_in_batch(store, session_id, error);
    if (status == SJ_OK) {
        status = end_streams(store, session_id, error);
    }
    sj_store_return(store);
    return status;
}
