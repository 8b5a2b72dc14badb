#include "collector-server/store/zombie_change.h"

#include <stddef.h>

static const char sql[] =
    "UPDATE zombies SET state = CASE WHEN ?2 THEN 'resolved' ELSE state END,"
    " resolved_realtime_ns = CASE WHEN ?2 THEN unixepoch() * 1000000000 ELSE resolved_realtime_ns"
    " END, note = coalesce(?3, note) WHERE zombie_id = ?1";

sj_status sj_zombie_change_apply(sqlite3 *database, int64_t zombie_id,
                                 const sj_zombie_change *change, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, zombie_id);
        sqlite3_bind_int(statement, 2, change->is_resolved);
        sqlite3_bind_text(statement, 3, change->note, -1, SQLITE_STATIC);
    }
    const bool is_done = sqlite3_step(statement) == SQLITE_DONE;
    const bool is_found = is_done && sqlite3_changes(database) != 0;
    sqlite3_finalize(statement);
    if (!is_done) {
        return sj_fail(error, SJ_EIO, "%s", sqlite3_errmsg(database));
    }
    return is_found
               ? SJ_OK
               : sj_fail(error, SJ_ENOTFOUND, "there is no finding %lld", (long long)zombie_id);
}
