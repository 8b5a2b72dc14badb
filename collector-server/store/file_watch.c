/* Reads through SQLite's own descriptor, because closing another descriptor of the file would
 * release the locks that this process holds on it. The offsets in the log's index are part of
 * SQLite's file format (https://sqlite.org/walformat.html). */
#include "collector-server/store/file_watch.h"

#include "collector-server/store/log_frames.h"

#include <string.h>

enum {
    CHECKPOINT_LOCK = 1, /* lock in the index, which every checkpoint holds */
    INDEX_BYTES = 32768,
    SALT_WORD = 32 / 4,
    BACKFILL_WORD = 96 / 4,
    BACKFILL_ATTEMPTED_WORD = 128 / 4,
    FIXED_BYTES = 24, /* bytes of the header that never change: magic, page size, versions */
    CHANGE_COUNTER = 24,
    APPLICATION_ID = 68
};

static int read_mode(void *context, int count, char **values, char **names)
{
    (void)count;
    (void)names;
    *(bool *)context = values[0] != NULL && strcmp(values[0], "wal") == 0;
    return 0;
}

/* Opens the log, if the database has one, so that the connection maps the index. Returns true if
 * it has one. */
static bool has_log(sqlite3 *database)
{
    bool is_wal = false;
    return sqlite3_exec(database, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL) ==
               SQLITE_OK &&
           sqlite3_exec(database, "PRAGMA journal_mode", read_mode, &is_wal, NULL) == SQLITE_OK &&
           is_wal;
}

static bool read_log(sqlite3_file *file, uint32_t log[SJ_FILE_WATCH_LOG_WORDS])
{
    void volatile *mapped = NULL;
    if (file->pMethods->xShmMap(file, 0, INDEX_BYTES, 0, &mapped) != SQLITE_OK || mapped == NULL) {
        return false;
    }
    const uint32_t volatile *words = mapped;
    log[0] = words[SALT_WORD];
    log[1] = words[SALT_WORD + 1];
    log[2] = words[BACKFILL_WORD];
    log[3] = words[BACKFILL_ATTEMPTED_WORD];
    return true;
}

/* Reads the values that a check compares. Returns false if that is not possible now. */
static bool read_file(sqlite3_file *file, sj_file_watch *found)
{
    sqlite3_int64 bytes = 0;
    if (!read_log(file, found->log) || file->pMethods->xFileSize(file, &bytes) != SQLITE_OK) {
        return false;
    }
    found->file_bytes = bytes;
    /* Bytes after the end of a short file read as zeros. */
    const int result = file->pMethods->xRead(file, found->header, sizeof(found->header), 0);
    return result == SQLITE_OK || result == SQLITE_IOERR_SHORT_READ;
}

/* True if a checkpoint can have turned `before` into `after`: the same database, and not an older
 * copy. For a new database, everything is still in the log, also its application id. */
static bool is_successor(const sj_file_watch *before, const sj_file_watch *after)
{
    const uint8_t *old = before->header;
    const uint8_t *new = after->header;
    return before->file_bytes == 0 ||
           (memcmp(old, new, FIXED_BYTES) == 0 &&
            (sj_log_word(old + APPLICATION_ID) == 0 ||
             memcmp(old + APPLICATION_ID, new + APPLICATION_ID, 4) == 0) &&
            (int32_t)(sj_log_word(new + CHANGE_COUNTER) - sj_log_word(old + CHANGE_COUNTER)) >= 0);
}

/* True if a checkpoint may have run. A checkpoint that failed half-way does not change its frame
 * count, nor does the next attempt. So until one succeeds, each check may find more pages in the
 * file. */
static bool has_checkpoint(const sj_file_watch *before, const sj_file_watch *after)
{
    return memcmp(before->log, after->log, sizeof(before->log)) != 0 ||
           before->log[2] != before->log[3];
}

static bool is_consistent(const sj_file_watch *before, const sj_file_watch *after)
{
    return has_checkpoint(before, after)
               ? is_successor(before, after)
               : before->file_bytes == after->file_bytes &&
                     memcmp(before->header, after->header, sizeof(before->header)) == 0;
}

sj_status sj_file_watch_check(sj_file_watch *watch, sqlite3 *database, const char *path,
                              sj_error *error)
{
    sqlite3_file *file = NULL;
    sj_file_watch found = {.is_known = true};
    if (!watch->is_overwritten && (watch->is_known || has_log(database)) &&
        sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
        file != NULL && file->pMethods != NULL && file->pMethods->iVersion >= 2 &&
        read_log(file, found.log) &&
        file->pMethods->xShmLock(file, CHECKPOINT_LOCK, 1,
                                 SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE) == SQLITE_OK) {
        const bool is_read = read_file(file, &found);
        file->pMethods->xShmLock(file, CHECKPOINT_LOCK, 1,
                                 SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
        if (is_read) {
            found.is_overwritten = watch->is_known && !is_consistent(watch, &found);
            *watch = found;
        }
    }
    return !watch->is_overwritten
               ? SJ_OK
               : sj_fail(error, SJ_EIO,
                         "%s was overwritten while it was open, and nothing is acknowledged any "
                         "more: stop this program, remove the file with its -wal and -shm, and put "
                         "a copy in place by `sojourn restore`",
                         path);
}
