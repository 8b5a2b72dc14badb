#include "collector-server/maintenance/removal.h"

#include "collector-server/maintenance/block_move.h"
#include "collector-server/maintenance/orphans.h"
#include "collector-server/maintenance/slices.h"
#include "collector-server/store/database.h"
#include "proto/base/progress.h"
#include "schema/queries/maintenance/removal.h"

#include <malloc.h>
#include <stddef.h>

enum {
    ROWS_A_SLICE = 1000,
    REPORTS_A_SLICE = 100 /* each with the frames of its stacks */
};

/* Rows that are deleted first, in pieces. Foreign keys delete the other rows with the row in
 * `sessions`. */
typedef struct removed_rows {
    const char *count;  /* SQL that counts them */
    const char *remove; /* SQL that deletes some of them */
    int64_t piece;
} removed_rows;

#define COUNT(table) "SELECT count(*) FROM " table " WHERE session_id = ?1"
#define COUNT_BY_STREAM(table)                                                                     \
    "SELECT count(*) FROM streams AS s JOIN " table " USING (stream_id) WHERE s.session_id = ?1"

static const removed_rows removals[] = {
    {COUNT_BY_STREAM("blocks"),
     "DELETE FROM blocks WHERE block_id IN (SELECT b.block_id FROM streams AS s JOIN blocks AS b "
     "USING (stream_id) WHERE s.session_id = ?1 LIMIT ?2)",
     SJ_BLOCKS_A_SLICE},
    {COUNT("call_paths"),
     "DELETE FROM call_paths WHERE path_id IN (SELECT path_id FROM call_paths WHERE "
     "session_id = ?1 LIMIT ?2)",
     ROWS_A_SLICE},
    {COUNT("call_edges"),
     "DELETE FROM call_edges WHERE (session_id, caller_function_id, callee_function_id) IN (SELECT "
     "session_id, caller_function_id, callee_function_id FROM call_edges WHERE session_id = ?1 "
     "LIMIT ?2)",
     ROWS_A_SLICE},
    {COUNT("function_stats"),
     "DELETE FROM function_stats WHERE (session_id, function_id) IN (SELECT session_id, "
     "function_id FROM function_stats WHERE session_id = ?1 LIMIT ?2)",
     ROWS_A_SLICE},
    {COUNT_BY_STREAM("timeline"),
     "DELETE FROM timeline WHERE (stream_id, level, number) IN (SELECT t.stream_id, level, "
     "t.number FROM streams AS s JOIN timeline AS t USING (stream_id) WHERE s.session_id = ?1 "
     "LIMIT ?2)",
     ROWS_A_SLICE},
    {COUNT("slow_calls"),
     "DELETE FROM slow_calls WHERE (session_id, function_id, place) IN (SELECT session_id, "
     "function_id, place FROM slow_calls WHERE session_id = ?1 LIMIT ?2)",
     ROWS_A_SLICE},
    {COUNT("call_costs"),
     "DELETE FROM call_costs WHERE (session_id, call_id) IN (SELECT session_id, call_id FROM "
     "call_costs WHERE session_id = ?1 LIMIT ?2)",
     ROWS_A_SLICE},
    {COUNT("arguments"),
     "DELETE FROM arguments WHERE (session_id, call_id, position, kind, rule) IN (SELECT "
     "session_id, call_id, position, kind, rule FROM arguments WHERE session_id = ?1 LIMIT ?2)",
     ROWS_A_SLICE},
    {COUNT("gaps"),
     "DELETE FROM gaps WHERE gap_id IN (SELECT gap_id FROM gaps WHERE session_id = ?1 LIMIT ?2)",
     ROWS_A_SLICE},
    {COUNT("reports"),
     "DELETE FROM reports WHERE report_id IN (SELECT report_id FROM reports WHERE session_id = ?1 "
     "LIMIT ?2)",
     REPORTS_A_SLICE},
    {COUNT("quarantined_blocks"),
     "DELETE FROM quarantined_blocks WHERE quarantined_id IN (SELECT quarantined_id FROM "
     "quarantined_blocks WHERE session_id = ?1 LIMIT ?2)",
     SJ_BLOCKS_A_SLICE},
    {COUNT("marks"),
     "DELETE FROM marks WHERE mark_id IN (SELECT mark_id FROM marks WHERE session_id = ?1 LIMIT "
     "?2)",
     ROWS_A_SLICE},
    {COUNT("stacks"),
     "DELETE FROM stacks WHERE (session_id, number, level) IN (SELECT session_id, number, level "
     "FROM stacks WHERE session_id = ?1 LIMIT ?2)",
     ROWS_A_SLICE},
    {COUNT("mappings"),
     "DELETE FROM mappings WHERE (session_id, process_number, module_number, bias) IN (SELECT "
     "session_id, process_number, module_number, bias FROM mappings WHERE session_id = ?1 LIMIT "
     "?2)",
     ROWS_A_SLICE},
    {COUNT("threads"),
     "DELETE FROM threads WHERE thread_id IN (SELECT thread_id FROM threads WHERE session_id = ?1 "
     "LIMIT ?2)",
     ROWS_A_SLICE},
};

enum { REMOVALS = sizeof(removals) / sizeof(removals[0]) };

static sj_status fail_sql(sqlite3 *database, sj_error *error)
{
    const int result = sqlite3_extended_errcode(database);
    return sj_fail(error, sj_database_status(result), "cannot remove the session: %s",
                   sqlite3_errmsg(database));
}

static uint64_t count_pieces(sqlite3 *database, int64_t session_id)
{
    uint64_t pieces = 0;
    for (size_t i = 0; sj_progress_is_watched() && i < REMOVALS; ++i) {
        sqlite3_stmt *row = NULL;
        if (sqlite3_prepare_v2(database, removals[i].count, -1, &row, NULL) == SQLITE_OK) {
            sqlite3_bind_int64(row, 1, session_id);
            pieces += sqlite3_step(row) == SQLITE_ROW
                          ? (uint64_t)(sqlite3_column_int64(row, 0) / removals[i].piece) + 1
                          : 0;
        }
        sqlite3_finalize(row);
    }
    return pieces;
}

static sj_status remove_rows(sqlite3 *database, int64_t session_id, sj_error *error)
{
    sj_status status = SJ_OK;
    const sj_progress_work work = sj_progress_begin(count_pieces(database, session_id));
    for (size_t i = 0; i < REMOVALS && status == SJ_OK; ++i) {
        status = sj_slices_delete(database, removals[i].remove, session_id, removals[i].piece, work,
                                  error);
    }
    sj_progress_end(work);
    return status;
}

static sj_status remove_session(sqlite3 *database, int64_t session_id, sj_error *error)
{
    SJ_TRY(remove_rows(database, session_id, error));
    SJ_TRY(sj_slices_run(database,
                         "UPDATE sessions SET parent_session_id = NULL WHERE "
                         "parent_session_id = ?1",
                         session_id, 0, NULL, error));
    SJ_TRY(sj_slices_run(database,
                         "UPDATE block_files SET is_needed = 0 WHERE session_uuid = "
                         "(SELECT uuid FROM sessions WHERE session_id = ?1)",
                         session_id, 0, NULL, error));
    SJ_TRY(sj_slices_run(database, "DELETE FROM sessions WHERE session_id = ?1", session_id, 0,
                         NULL, error));
    SJ_TRY(sj_orphans_remove(database, error));
    return sj_block_files_sweep(database, error);
}

static sj_status finish(sqlite3 *database, int64_t session_id, sj_error *error)
{
    const sj_progress_work work = sj_progress_begin_list(2);
    sj_status status = remove_session(database, session_id, error);
    sj_progress_step(work);
    if (status == SJ_OK) {
        status = sj_slices_give_space_back(database, error);
    }
    sj_progress_end(work);
    /* glibc keeps what a collector has freed: over 50 MB after thousands of sessions. */
    (void)malloc_trim(0);
    return status;
}

static sj_status check_removable(sqlite3 *database, int64_t session_id, bool force, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database,
                           "SELECT pinned, state = 'recording' FROM sessions WHERE session_id = ?1",
                           -1, &statement, NULL) != SQLITE_OK) {
        return fail_sql(database, error);
    }
    sqlite3_bind_int64(statement, 1, session_id);
    const bool found = sqlite3_step(statement) == SQLITE_ROW;
    const bool pinned = found && sqlite3_column_int(statement, 0) != 0;
    const bool recording = found && sqlite3_column_int(statement, 1) != 0;
    sqlite3_finalize(statement);
    if (!found) {
        return sj_fail(error, SJ_ENOTFOUND, "there is no session %lld", (long long)session_id);
    }
    if (pinned) {
        return sj_fail(error, SJ_EPERM, "session %lld is pinned; unpin it first",
                       (long long)session_id);
    }
    if (recording && !force) {
        return sj_fail(error, SJ_EPERM, "session %lld is still recording", (long long)session_id);
    }
    return SJ_OK;
}

/* Hides the session and stores the reason of the removal, in one transaction. */
static sj_status announce(sqlite3 *database, int64_t session_id, const char *reason,
                          sj_error *error)
{
    if (sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        return fail_sql(database, error);
    }
    sj_status status = sj_slices_run(database, sj_removal_note_sql, session_id, 0, reason, error);
    if (status == SJ_OK) {
        status =
            sj_slices_run(database, "UPDATE sessions SET state = 'removing' WHERE session_id = ?1",
                          session_id, 0, NULL, error);
    }
    if (status == SJ_OK && sqlite3_exec(database, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        status = fail_sql(database, error);
    }
    if (status != SJ_OK) {
        sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

sj_status sj_session_remove(sqlite3 *database, int64_t session_id, const char *reason, bool force,
                            sj_error *error)
{
    SJ_TRY(check_removable(database, session_id, force, error));
    SJ_TRY(announce(database, session_id, reason, error));
    return finish(database, session_id, error);
}

sj_status sj_removal_resume(sqlite3 *database, sj_error *error)
{
    for (;;) {
        sqlite3_stmt *statement = NULL;
        if (sqlite3_prepare_v2(database,
                               "SELECT session_id FROM sessions WHERE state = 'removing' LIMIT 1",
                               -1, &statement, NULL) != SQLITE_OK) {
            return fail_sql(database, error);
        }
        const bool found = sqlite3_step(statement) == SQLITE_ROW;
        const int64_t session_id = found ? sqlite3_column_int64(statement, 0) : 0;
        sqlite3_finalize(statement);
        if (!found) {
            SJ_TRY(sj_orphans_remove(database, error));
            return sj_block_files_sweep(database, error);
        }
        SJ_TRY(finish(database, session_id, error));
    }
}
