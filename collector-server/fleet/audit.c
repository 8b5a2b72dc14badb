#include "collector-server/fleet/audit.h"

#include "collector-server/fleet/fleet_internal.h"
#include "collector-server/store/database.h"
#include "proto/base/log.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

enum { SQL_ROWS_KEPT = 100000 };

static sj_status failed(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_errcode(database)),
                   "the audit cannot be written: %s", sqlite3_errmsg(database));
}

/* Removes rows of the action 'sql' that are older than the newest `SQL_ROWS_KEPT` rows of the
 * audit. Rows of other actions stay for ever, so that many queries cannot push them out. */
static sj_status forget_sql(sqlite3 *database, int64_t newest, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, "DELETE FROM audit WHERE action = 'sql' AND audit_id <= ?1",
                           -1, &statement, NULL) != SQLITE_OK) {
        return failed(database, error);
    }
    sqlite3_bind_int64(statement, 1, newest - SQL_ROWS_KEPT);
    const int step = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return step == SQLITE_DONE ? SJ_OK : failed(database, error);
}

sj_status sj_audit_add(sqlite3 *database, const sj_audit_entry *entry, sj_error *error)
{
    char user[80];
    sqlite3_stmt *statement = NULL;
    const struct passwd *account = entry->who == NULL ? getpwuid(geteuid()) : NULL;
    snprintf(user, sizeof(user), "user:%s", account != NULL ? account->pw_name : "?");
    if (sqlite3_prepare_v2(database,
                           "INSERT INTO audit (realtime_ns, who, peer, action, object, outcome)"
                           " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                           -1, &statement, NULL) != SQLITE_OK) {
        return failed(database, error);
    }
    sqlite3_bind_int64(statement, 1, sj_fleet_now_ns());
    sj_fleet_bind_text(statement, 2, entry->who != NULL ? entry->who : user);
    sj_fleet_bind_text(statement, 3, entry->peer);
    sj_fleet_bind_text(statement, 4, entry->action);
    sj_fleet_bind_text(statement, 5, entry->object);
    sj_fleet_bind_text(statement, 6, entry->outcome);
    const int step = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return step == SQLITE_DONE ? forget_sql(database, sqlite3_last_insert_rowid(database), error)
                               : failed(database, error);
}

void sj_audit_add_local(sqlite3 *database, const char *action, const char *object,
                        const char *outcome)
{
    sj_error error = {0};
    const sj_audit_entry entry = {
        .peer = "", .action = action, .object = object, .outcome = outcome};
    if (sj_audit_add(database, &entry, &error) != SJ_OK) {
        sj_log(SJ_LOG_ERROR, "audit", "%s of %.200s is not in the audit: %s", action, object,
               error.text);
    }
}
