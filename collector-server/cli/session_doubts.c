#include "collector-server/cli/session_doubts.h"

#include <stdio.h>

static void take_row(sqlite3_stmt *row, sj_session_doubts *doubts)
{
    if (sqlite3_step(row) == SQLITE_ROW) {
        const char *reason = (const char *)sqlite3_column_text(row, 0);
        snprintf(doubts->quarantine_reason, sizeof(doubts->quarantine_reason), "%s",
                 reason != NULL ? reason : "");
        doubts->folded_paths = (uint64_t)sqlite3_column_int64(row, 1);
        doubts->folded_calls = (uint64_t)sqlite3_column_int64(row, 2);
    }
    sqlite3_finalize(row);
}

void sj_session_doubts_read(sqlite3 *database, int64_t session_id, sj_session_doubts *doubts)
{
    sqlite3_stmt *row = NULL;
    *doubts = (sj_session_doubts){0};
    if (sqlite3_prepare_v2(database,
                           "SELECT quarantine_reason, folded_paths, folded_calls FROM sessions"
                           " WHERE session_id = ?1",
                           -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        take_row(row, doubts);
    }
}
