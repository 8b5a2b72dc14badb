#include "collector-server/cli/session_doubts.h"

#include "agent/host/directories.h"
#include "agent/recording/recovery.h"
#include "schema/queries/cli/session_doubts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* True if the spool of this machine has the session and its recorder no longer runs. A running
 * recorder holds a lock on the file that names the session's target. */
static bool is_abandoned(const sj_session_id *session)
{
    char root[PATH_MAX];
    char path[PATH_MAX + 64];
    char text[SJ_SESSION_TEXT_BYTES];
    sj_error ignored;
    sj_recovery_claim claim;
    if (sj_state_directory("spool", root, sizeof(root), &ignored) != SJ_OK) {
        return false;
    }
    sj_session_text(session, text);
    snprintf(path, sizeof(path), "%s/%s.to", root, text);
    if (sj_recovery_claim_session(path, &claim) != SJ_OK) {
        return false;
    }
    sj_recovery_release(&claim, false);
    return true;
}

static void read_row(sqlite3_stmt *row, sj_session_doubts *doubts)
{
    if (sqlite3_step(row) == SQLITE_ROW) {
        const char *reason = (const char *)sqlite3_column_text(row, 0);
        snprintf(doubts->quarantine_reason, sizeof(doubts->quarantine_reason), "%s",
                 reason != NULL ? reason : "");
        doubts->folded_paths = (uint64_t)sqlite3_column_int64(row, 1);
        doubts->folded_calls = (uint64_t)sqlite3_column_int64(row, 2);
        sj_session_id session;
        if (sqlite3_column_bytes(row, 3) == sizeof(session.bytes)) {
            memcpy(session.bytes, sqlite3_column_blob(row, 3), sizeof(session.bytes));
            doubts->is_abandoned = is_abandoned(&session);
        }
        const char *missing = (const char *)sqlite3_column_text(row, 4);
        sj_function_name_fit(missing != NULL ? missing : "", 0, doubts->not_recorded);
    }
    sqlite3_finalize(row);
}

void sj_session_doubts_read(sqlite3 *database, int64_t session_id, sj_session_doubts *doubts)
{
    sqlite3_stmt *row = NULL;
    *doubts = (sj_session_doubts){0};
    if (sqlite3_prepare_v2(database, sj_session_doubts_sql, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        read_row(row, doubts);
    }
}
