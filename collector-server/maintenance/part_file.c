#include "collector-server/maintenance/part_file.h"

#include "collector-server/maintenance/deleted_file.h"
#include "collector-server/store/database.h"
#include "collector-server/store/foreign_log.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fails if a process, such as the collector, still uses a deleted or renamed database of this
 * name. Such a process would not see the new file. */
static sj_status check_not_held(const char *to, sj_error *error)
{
    struct stat about;
    const pid_t holder = lstat(to, &about) != 0 ? sj_deleted_file_holder(to) : 0;
    return holder == 0 ? SJ_OK
                       : sj_fail(error, SJ_EAGAIN,
                                 "process %d still uses a database %s that was deleted or renamed, "
                                 "and would not see the new one; end that process first",
                                 (int)holder, to);
}

/* Fails if the file exists, or one beside it that SQLite would use as its log. */
static sj_status check_unused(const char *to, sj_error *error)
{
    static const char *const ends[] = {"", "-wal", "-journal", "-shm"};
    SJ_TRY(check_not_held(to, error));
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); ++i) {
        char name[SJ_PART_BYTES];
        struct stat about;
        if (snprintf(name, sizeof(name), "%s%s", to, ends[i]) >= PATH_MAX) {
            return sj_fail(error, SJ_EINVAL, "the name %.60s... is too long", to);
        }
        if (lstat(name, &about) == 0) {
            return sj_fail(error, SJ_EEXIST,
                           "%s exists and is not overwritten; choose another name, or move it away",
                           name);
        }
    }
    return SJ_OK;
}

static sj_status sync_path(const char *path, sj_error *error)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool is_synced = file >= 0 && fsync(file) == 0;
    const int number = errno;
    if (file >= 0) {
        close(file);
    }
    return is_synced ? SJ_OK : sj_fail(error, SJ_EIO, "cannot sync %s: %s", path, strerror(number));
}

static void remove_log(const char *part)
{
    static const char *const ends[] = {"-wal", "-journal", "-shm", SJ_LOG_BASE_END};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); ++i) {
        char name[SJ_PART_BYTES];
        snprintf(name, sizeof(name), "%s%s", part, ends[i]);
        unlink(name);
    }
}

void sj_part_remove(const char *part)
{
    unlink(part);
    remove_log(part);
}

/* Writes the log's changes into the file and removes the log. The change of the file's header is
 * committed at the end of the statement. With the exclusive lock, SQLite needs no shared memory,
 * which not all file systems support. */
static bool leave_log(sqlite3 *copy)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_exec(copy, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(copy, "PRAGMA journal_mode = DELETE", -1, &row, NULL) != SQLITE_OK) {
        return false;
    }
    const bool is_left = sqlite3_step(row) == SQLITE_ROW &&
                         strcmp((const char *)sqlite3_column_text(row, 0), "delete") == 0 &&
                         sqlite3_step(row) == SQLITE_DONE;
    return sqlite3_finalize(row) == SQLITE_OK && is_left;
}

/* Turns the copy into a file that needs no log, and removes its log. */
static sj_status finish_part(const char *part, sj_error *error)
{
    sqlite3 *copy = NULL;
    sj_status status = SJ_OK;
    if (sqlite3_open_v2(part, &copy, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        !leave_log(copy)) {
        const sj_status reason = sj_database_status(sqlite3_errcode(copy));
        status = sj_fail(error, reason != SJ_OK ? reason : SJ_EIO,
                         "cannot write the log of %s into it: %s", part, sqlite3_errmsg(copy));
    }
    sqlite3_close(copy);
    if (status == SJ_OK) {
        remove_log(part);
    }
    return status;
}

sj_status sj_part_name(const char *part, const char *to, sj_error *error)
{
    char folder[SJ_PART_BYTES];
    SJ_TRY(finish_part(part, error));
    SJ_TRY(sync_path(part, error));
    SJ_TRY(check_unused(to, error));
    if (renameat2(AT_FDCWD, part, AT_FDCWD, to, RENAME_NOREPLACE) != 0 &&
        (errno != EINVAL || link(part, to) != 0 || unlink(part) != 0)) {
        return sj_fail(error, errno == EEXIST ? SJ_EEXIST : SJ_EIO, "cannot make %s: %s", to,
                       strerror(errno));
    }
    snprintf(folder, sizeof(folder), "%s", to);
    return sync_path(dirname(folder), error);
}

sj_status sj_part_make(const char *to, char part[SJ_PART_BYTES], sj_error *error)
{
    SJ_TRY(check_unused(to, error));
    snprintf(part, SJ_PART_BYTES, "%s.XXXXXX", to);
    const int file = mkstemp(part);
    if (file < 0) {
        return sj_fail(error, SJ_EIO, "cannot create a file beside %s: %s", to, strerror(errno));
    }
    close(file);
    return SJ_OK;
}
