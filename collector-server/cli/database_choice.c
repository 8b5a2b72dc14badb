#include "collector-server/cli/database_choice.h"

#include "collector-server/store/database.h"
#include "collector-server/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_newer(const struct stat *left, const struct timespec *right)
{
    return left->st_mtim.tv_sec != right->tv_sec ? left->st_mtim.tv_sec > right->tv_sec
                                                 : left->st_mtim.tv_nsec > right->tv_nsec;
}

static bool find_newest(char path[PATH_MAX])
{
    DIR *folder = opendir(".");
    if (folder == NULL) {
        return false;
    }
    bool found = false;
    struct timespec newest = {0};
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        struct stat status;
        if (fnmatch("sojourn-*.db", entry->d_name, 0) == 0 && stat(entry->d_name, &status) == 0 &&
            S_ISREG(status.st_mode) && (!found || is_newer(&status, &newest))) {
            found = true;
            newest = status.st_mtim;
            snprintf(path, PATH_MAX, "%s", entry->d_name);
        }
    }
    closedir(folder);
    return found;
}

sj_status sj_database_path(const char *named, char path[PATH_MAX], sj_error *error)
{
    if (named == NULL) {
        named = getenv(SJ_ENV_DATABASE);
    }
    if (named == NULL || named[0] == '\0') {
        return find_newest(path)
                   ? SJ_OK
                   : sj_fail(error, SJ_ENOTFOUND,
                             "no database: name a FILE, set " SJ_ENV_DATABASE
                             ", or go to a folder that holds a sojourn-*.db (`sojourn record` "
                             "makes one)");
    }
    if (strlen(named) >= PATH_MAX) {
        return sj_fail(error, SJ_EINVAL, "the name of the database is too long");
    }
    snprintf(path, PATH_MAX, "%s", named);
    return SJ_OK;
}

sj_status sj_database_choose(const char *named, sqlite3 **database, sj_error *error)
{
    char path[PATH_MAX];
    SJ_TRY(sj_database_path(named, path, error));
    sj_status status = sj_database_open_reader(path, database, error);
    if (status == SJ_EVERSION &&
        sj_database_open(path, SJ_DATABASE_WRITE, database, error) == SJ_OK) {
        sqlite3_close(*database); /* an older file, brought up to date */
        status = sj_database_open_reader(path, database, error);
    }
    sj_error settling;
    if (status == SJ_OK && sj_store_recover_file(path, *database, &settling) != SJ_OK) {
        fprintf(stderr, "sojourn: the sums of %s lag behind its blocks: %s\n", path, settling.text);
    }
    return status;
}

static sj_status pick_session(sqlite3_stmt *statement, const char *wanted, int64_t *session_id,
                              sj_error *error)
{
    int count = 0;
    int result;
    while (count < 2 && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        *session_id = sqlite3_column_int64(statement, 0);
        ++count;
    }
    sqlite3 *database = sqlite3_db_handle(statement);
    if (count < 2 && result != SQLITE_DONE) {
        return sj_fail(error, SJ_EIO, "cannot read the sessions: %s", sqlite3_errmsg(database));
    }
    if (count == 0) {
        return wanted == NULL || strcmp(wanted, "last") == 0
                   ? sj_fail(error, SJ_ENOTFOUND, "the database holds no session")
                   : sj_fail(error, SJ_ENOTFOUND,
                             "there is no session '%s'; `sojourn sessions` lists them", wanted);
    }
    return count == 1
               ? SJ_OK
               : sj_fail(error, SJ_EINVAL, "'%s' begins more than one session's uuid", wanted);
}

sj_status sj_session_choose(sqlite3 *database, const char *wanted, int64_t *session_id,
                            sj_error *error)
{
    const char *sql = "SELECT session_id FROM sessions WHERE session_id = CAST(?1 AS INTEGER)";
    if (wanted == NULL || strcmp(wanted, "last") == 0) {
        sql = "SELECT session_id FROM sessions ORDER BY started_realtime_ns DESC, session_id DESC "
              "LIMIT 1";
    } else if (wanted[strspn(wanted, "0123456789")] != '\0' || strlen(wanted) > 18) {
        if (strlen(wanted) < 4 || wanted[strspn(wanted, "0123456789abcdefABCDEF")] != '\0') {
            return sj_fail(error, SJ_ENOTFOUND,
                           "'%s' names no session: give `last`, a session_id, or the beginning of "
                           "a uuid; `sojourn sessions` lists them",
                           wanted);
        }
        sql = "SELECT session_id FROM sessions WHERE hex(uuid) LIKE ?1 || '%'";
    }
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_ECORRUPT, "cannot read the sessions: %s",
                       sqlite3_errmsg(database));
    }
    if (sqlite3_bind_parameter_count(statement) > 0) {
        sqlite3_bind_text(statement, 1, wanted, -1, SQLITE_STATIC);
    }
    const sj_status status = pick_session(statement, wanted, session_id, error);
    sqlite3_finalize(statement);
    return status;
}
