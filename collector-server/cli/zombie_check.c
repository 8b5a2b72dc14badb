#include "collector-server/cli/zombie_check.h"

#include <stdio.h>
#include <unistd.h>

static int fail(const sj_command *command, sqlite3 *database)
{
    return sj_command_error(command, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
}

static bool was_watched(sqlite3 *database)
{
    sqlite3_stmt *statement = NULL;
    bool watched = false;
    if (sqlite3_prepare_v2(database, "SELECT 1 FROM zombie_accounts WHERE not_watched = '' LIMIT 1",
                           -1, &statement, NULL) == SQLITE_OK) {
        watched = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return watched;
}

/* Makes the database of the baseline readable beside the other. */
static bool attach_baseline(sqlite3 *database, const char *baseline)
{
    char *attach = baseline != NULL ? sqlite3_mprintf("ATTACH %Q AS baseline", baseline) : NULL;
    const bool is_fine =
        baseline == NULL ||
        (attach != NULL && sqlite3_exec(database, attach, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_free(attach);
    return is_fine;
}

int sj_zombie_check(const sj_command *command, sqlite3 *database, const char *baseline)
{
    sqlite3_stmt *statement = NULL;
    size_t count = 0;
    if (!was_watched(database)) {
        return sj_command_error(command, SJ_EXIT_FAILED,
                                "no process was watched: record with --zombies");
    }
    if (baseline != NULL && access(baseline, R_OK) != 0) {
        return sj_command_error(command, SJ_EXIT_NOT_FOUND, "there is no %s", baseline);
    }
    const char *sql =
        baseline != NULL ? "SELECT zombie_id, kind, used_in FROM zombies WHERE state <> 'resolved'"
                           " AND fingerprint NOT IN (SELECT fingerprint FROM baseline.zombies)"
                         : "SELECT zombie_id, kind, used_in FROM zombies WHERE state <> 'resolved'";
    if (!attach_baseline(database, baseline) ||
        sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        return fail(command, database);
    }
    while (sqlite3_step(statement) == SQLITE_ROW) {
        printf("finding %lld  %s  %s\n", (long long)sqlite3_column_int64(statement, 0),
               (const char *)sqlite3_column_text(statement, 1),
               (const char *)sqlite3_column_text(statement, 2));
        count++;
    }
    const bool failed = sqlite3_finalize(statement) != SQLITE_OK;
    printf("%zu new findings of freed memory\n", count);
    return failed ? fail(command, database) : count != 0 ? SJ_EXIT_DIFFERS : SJ_EXIT_OK;
}
