#include "collector-server/cli/quarantine_reason.h"

#include "collector-server/store/database.h"

#include <stdio.h>

static bool take_reason(sqlite3_stmt *row, char reason[SJ_QUARANTINE_TEXT_BYTES])
{
    reason[0] = '\0';
    if (sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) != SQLITE_NULL) {
        snprintf(reason, SJ_QUARANTINE_TEXT_BYTES, "%s", (const char *)sqlite3_column_text(row, 0));
    }
    sqlite3_finalize(row);
    return reason[0] != '\0';
}

bool sj_quarantine_reason(sqlite3 *database, int64_t session_id,
                          char reason[SJ_QUARANTINE_TEXT_BYTES])
{
    static const char sql[] = "SELECT quarantine_reason FROM sessions WHERE session_id = ?1";
    sqlite3_stmt *row = NULL;
    reason[0] = '\0';
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        return false;
    }
    sqlite3_bind_int64(row, 1, session_id);
    return take_reason(row, reason);
}

bool sj_quarantine_reason_in(const char *path, const sj_session_id *session,
                             char reason[SJ_QUARANTINE_TEXT_BYTES])
{
    static const char sql[] = "SELECT quarantine_reason FROM sessions WHERE uuid = ?1";
    sqlite3 *database = NULL;
    sqlite3_stmt *row = NULL;
    sj_error ignored;
    bool found = false;
    reason[0] = '\0';
    if (sj_database_open(path, SJ_DATABASE_READ, &database, &ignored) != SJ_OK) {
        return false;
    }
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_blob(row, 1, session->bytes, sizeof(session->bytes), SQLITE_STATIC);
        found = take_reason(row, reason);
    }
    sqlite3_close(database);
    return found;
}
