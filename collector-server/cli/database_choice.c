#include "collector-server/cli/database_choice.h"

#include "collector-server/query/query.h"
#include "collector-server/store/database.h"
#include "collector-server/store/foreign_log.h"
#include "collector-server/store/sql.h"
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
#include <unistd.h>

#define LARGEST_COPY (INT64_C(1) << 30)

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

/* Copies a database into an empty file, by SQLite's backup. Other processes may use the database
 * meanwhile. */
static sj_status copy_database(const char *from, const char *to, sj_error *error)
{
    sqlite3 *source = NULL;
    sqlite3 *copy = NULL;
    int result = sqlite3_open_v2(from, &source, SQLITE_OPEN_READONLY, NULL);
    if (result == SQLITE_OK) {
        result = sqlite3_open_v2(to, &copy, SQLITE_OPEN_READWRITE, NULL);
    }
    sqlite3_backup *backup =
        result == SQLITE_OK ? sqlite3_backup_init(copy, "main", source, "main") : NULL;
    if (backup != NULL) {
        (void)sqlite3_backup_step(backup, -1);
        result = sqlite3_backup_finish(backup);
    } else if (result == SQLITE_OK) {
        result = sqlite3_errcode(copy);
    }
    sqlite3_close(source);
    sqlite3_close(copy);
    return result == SQLITE_OK
               ? SJ_OK
               : sj_fail(error, sj_database_status(result), "cannot copy %s to %s: %s", from, to,
                         sqlite3_errstr(result));
}

/* Copies the database to the empty file `copy`, converts the copy to this version, and opens it for
 * reading. The caller unlinks the copy, also on failure. */
static sj_status open_copy(const char *path, const char *copy, sqlite3 **database, sj_error *error)
{
    SJ_TRY(copy_database(path, copy, error));
    SJ_TRY(sj_database_open(copy, SJ_DATABASE_WRITE, database, error));
    sqlite3_exec(*database, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    sqlite3_close(*database);
    return sj_database_open_reader(copy, database, error);
}

/* Opens a converted copy of a file of an older version, because a reader must not change the file.
 * Returns SJ_EVERSION if the file exceeds LARGEST_COPY or no temporary file can be created. */
static sj_status open_older(const char *path, sqlite3 **database, sj_error *error)
{
    char copy[PATH_MAX];
    struct stat status;
    const char *folder = getenv("TMPDIR");
    if (stat(path, &status) != 0 || status.st_size > LARGEST_COPY) {
        return SJ_EVERSION; /* `error` still has the message of the first attempt */
    }
    const int length = snprintf(copy, sizeof(copy), "%s/sojourn-older-XXXXXX",
                                folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    const int file = length > 0 && (size_t)length < sizeof(copy) ? mkstemp(copy) : -1;
    if (file < 0) {
        return SJ_EVERSION;
    }
    close(file);
    const sj_status opened = open_copy(path, copy, database, error);
    unlink(copy);
    return opened;
}

sj_status sj_database_choose(const char *named, sqlite3 **database, sj_error *error)
{
    char path[PATH_MAX];
    SJ_TRY(sj_database_path(named, path, error));
    SJ_TRY(sj_foreign_log_check(path, error));
    sj_status status = sj_database_open_reader(path, database, error);
    if (status == SJ_EVERSION) {
        return open_older(path, database, error);
    }
    sj_error settling;
    if (status == SJ_OK && sj_store_recover_file(path, *database, &settling) != SJ_OK) {
        fprintf(stderr, "sojourn: the sums of %s lag behind its blocks: %s\n", path, settling.text);
    }
    return status;
}

static sj_status pick_session(const sj_sql_numbers *found, const char *wanted, int64_t *session_id,
                              sj_error *error)
{
    if (found->count == 0) {
        return wanted == NULL || strcmp(wanted, "last") == 0
                   ? sj_fail(error, SJ_ENOTFOUND, "the database holds no session")
                   : sj_fail(error, SJ_ENOTFOUND,
                             "there is no session '%s'; `sojourn sessions` lists them", wanted);
    }
    *session_id = found->values[0];
    return found->count == 1
               ? SJ_OK
               : sj_fail(error, SJ_EINVAL, "'%s' begins more than one session's uuid", wanted);
}

sj_status sj_session_choose(sqlite3 *database, const char *wanted, int64_t *session_id,
                            sj_error *error)
{
    /* A number of eight or more digits is the beginning of a uuid if no session has it as its
     * session_id. */
    const char *sql =
        "SELECT session_id FROM sessions WHERE session_id = CAST(?1 AS INTEGER) UNION ALL "
        "SELECT session_id FROM sessions WHERE length(?1) >= 8 AND hex(uuid) LIKE ?1 || '%' "
        "AND NOT EXISTS (SELECT 1 FROM sessions WHERE session_id = CAST(?1 AS INTEGER))";
    sj_sql_binds binds = SJ_SQL_TEXT(wanted);
    if (wanted == NULL || strcmp(wanted, "last") == 0) {
        binds = (sj_sql_binds){0};
        sql = "SELECT session_id FROM sessions ORDER BY started_realtime_ns DESC, session_id DESC "
              "LIMIT 1";
    } else if (wanted[strspn(wanted, "0123456789")] != '\0' || strlen(wanted) > 18) {
        if (strlen(wanted) < 4 || wanted[strspn(wanted, "0123456789abcdefABCDEF")] != '\0') {
            return sj_fail(error, SJ_ENOTFOUND,
                           "'%s' names no session: give `last`, a session_id, or the beginning of "
                           "a uuid; `sojourn sessions` lists them",
                           wanted);
        }
        sql = "SELECT session_id FROM sessions WHERE hex(uuid) LIKE ?1 || '%' LIMIT 2";
    }
    sj_sql_numbers found = {0};
    sj_status status = sj_sql_list_numbers(database, sql, binds, &found, error);
    if (status == SJ_OK) {
        status = pick_session(&found, wanted, session_id, error);
    }
    free(found.values);
    return status;
}
