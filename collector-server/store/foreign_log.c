/* Design notes
 *
 * SQLite's files do not say which file a log belongs to. The store notes it: the salts of the log,
 * which differ in each use, with the size and the first bytes of the file when the log began. Only
 * checkpoints change the file afterwards, and they write page 1 as a frame of the log has it. So
 * the file belongs to the log if its first bytes are the noted ones, or those of such a frame.
 *
 * A log that another program began has no note. Then the file must at least be a database with a
 * log, with the log's page size, and its change counter must be near the frames' change counters.
 *
 * The judgement needs an exclusive lock, which SQLite does not grant while another connection of
 * any process has the file open. The file is opened by SQLite's VFS, because closing another
 * descriptor would release the locks of this process. */
#include "collector-server/store/foreign_log.h"

#include "collector-server/store/database.h"
#include "collector-server/store/database_lock.h"
#include "collector-server/store/log_frames.h"
#include "proto/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_BYTES = PATH_MAX + 32,
    MOST_SET_ASIDE = 100,
    PAGE_SIZE_FIELD = 16,
    VERSIONS = 18, /* two bytes: 2 if the database has a log */
    WITH_LOG = 2,
    CHANGE_COUNTER = 24,
    APPLICATION_ID = 68
};

static const char magic[16] = "SQLite format 3";

/* The content of the note's file. */
typedef struct log_base {
    char magic[8];
    uint8_t salts[SJ_LOG_SALT_BYTES];
    int64_t file_bytes;
    uint8_t header[SJ_FILE_WATCH_HEADER_BYTES];
} log_base;

static const char base_magic[8] = "SJ-base";

/* Facts about page 1, from the committed frames of a log. */
typedef struct log_pages {
    bool has_commit;
    bool has_first_page;
    bool is_like_file;                    /* a frame of page 1 begins as the file does */
    uint32_t first_counter, last_counter; /* change counters of the frames of page 1 */
} log_pages;

static void add_first_page(log_pages *pages, const uint8_t *page, const uint8_t *header)
{
    const uint32_t counter = sj_log_word(page + CHANGE_COUNTER);
    pages->first_counter = pages->has_first_page ? pages->first_counter : counter;
    pages->last_counter = counter;
    pages->has_first_page = true;
    pages->is_like_file =
        pages->is_like_file || memcmp(page, header, SJ_FILE_WATCH_HEADER_BYTES) == 0;
}

/* Reads the log up to its last commit. */
static log_pages read_pages(sj_log_frames *log, const uint8_t *header)
{
    log_pages committed = {.has_commit = false};
    log_pages pages = committed;
    sj_log_frame frame;
    while (sj_log_frames_next(log, &frame)) {
        if (frame.page_number == 1) {
            add_first_page(&pages, frame.page, header);
        }
        if (frame.is_commit) {
            pages.has_commit = true;
            committed = pages;
        }
    }
    return committed;
}

static uint32_t page_bytes_of(const uint8_t *header)
{
    const uint32_t field = (uint32_t)header[PAGE_SIZE_FIELD] << 8 | header[PAGE_SIZE_FIELD + 1];
    return field == 1 ? 1 << 16 : field;
}

/* True if the change counter of the file is that of a frame, or one less than the first. */
static bool has_near_counter(const log_pages *pages, const uint8_t *header)
{
    const uint32_t counter = sj_log_word(header + CHANGE_COUNTER);
    return !pages->has_first_page || (int32_t)(counter - pages->first_counter) == -1 ||
           ((int32_t)(counter - pages->first_counter) >= 0 &&
            (int32_t)(pages->last_counter - counter) >= 0);
}

/* True if the log can belong to a file with this header, as far as the header says. */
static bool is_possible(const sj_log_frames *log, const log_pages *pages, const uint8_t *header)
{
    const uint32_t application = sj_log_word(header + APPLICATION_ID);
    return memcmp(header, magic, sizeof(magic)) == 0 && header[VERSIONS] == WITH_LOG &&
           header[VERSIONS + 1] == WITH_LOG && page_bytes_of(header) == log->page_bytes &&
           (application == 0 || application == SJ_DATABASE_APPLICATION_ID) &&
           has_near_counter(pages, header);
}

static bool read_base(const char *name, log_base *base)
{
    char base_name[NAME_BYTES];
    snprintf(base_name, sizeof(base_name), "%s" SJ_LOG_BASE_END, name);
    const int file = open(base_name, O_RDONLY | O_CLOEXEC);
    const bool is_read = file >= 0 && read(file, base, sizeof(*base)) == (ssize_t)sizeof(*base) &&
                         memcmp(base->magic, base_magic, sizeof(base_magic)) == 0;
    if (file >= 0) {
        close(file);
    }
    return is_read;
}

/* True if the file is the noted one: as it was, or as a checkpoint left it. */
static bool is_noted_file(const log_base *base, const log_pages *pages, const uint8_t *header,
                          int64_t file_bytes)
{
    return pages->is_like_file || (memcmp(base->header, header, sizeof(base->header)) == 0 &&
                                   file_bytes >= base->file_bytes);
}

static bool is_foreign(const char *name, const char *log_name, sqlite3_file *file)
{
    uint8_t header[SJ_FILE_WATCH_HEADER_BYTES];
    sqlite3_int64 file_bytes = 0;
    sj_log_frames log;
    log_base base;
    /* bytes after the end of a short file read as zeros */
    const int result = file->pMethods->xRead(file, header, sizeof(header), 0);
    if ((result != SQLITE_OK && result != SQLITE_IOERR_SHORT_READ) ||
        file->pMethods->xFileSize(file, &file_bytes) != SQLITE_OK) {
        return false;
    }
    bool found = false;
    if (sj_log_frames_open(log_name, &log)) {
        const log_pages pages = read_pages(&log, header);
        const bool is_noted =
            read_base(name, &base) && memcmp(base.salts, log.salts, sizeof(base.salts)) == 0;
        found =
            pages.has_commit && (!is_possible(&log, &pages, header) ||
                                 (is_noted && !is_noted_file(&base, &pages, header, file_bytes)));
    }
    sj_log_frames_close(&log);
    return found;
}

/* Finds the names of the database and of its log, with links resolved. Returns false if there is
 * no log that SQLite would read. */
static bool find_log(const char *path, char name[PATH_MAX], char log_name[NAME_BYTES])
{
    struct stat about;
    if (realpath(path, name) == NULL) {
        return false;
    }
    snprintf(log_name, NAME_BYTES, "%s-wal", name);
    return stat(log_name, &about) == 0 && about.st_size > SJ_LOG_HEADER_BYTES;
}

bool sj_foreign_log_exists(const char *path)
{
    char name[PATH_MAX];
    char log_name[NAME_BYTES];
    sj_database_lock lock;
    if (!find_log(path, name, log_name)) {
        return false;
    }
    const bool found =
        sj_database_lock_acquire(name, &lock) == SJ_OK && is_foreign(name, log_name, lock.file);
    sj_database_lock_release(&lock);
    return found;
}

/* Renames the log to the first unused name. Returns false with errno set if that fails. */
static bool rename_log(const char *log_name, char aside[NAME_BYTES])
{
    for (int i = 1; i <= MOST_SET_ASIDE; ++i) {
        char number[16] = "";
        if (i > 1) {
            snprintf(number, sizeof(number), "-%d", i);
        }
        snprintf(aside, NAME_BYTES, "%.*s.foreign%s", PATH_MAX, log_name, number);
        if (renameat2(AT_FDCWD, log_name, AT_FDCWD, aside, RENAME_NOREPLACE) == 0) {
            return true;
        }
        if (errno != EEXIST) {
            return false;
        }
    }
    return false;
}

static sj_status set_aside(const char *name, const char *log_name, sj_error *error)
{
    char aside[NAME_BYTES];
    if (!rename_log(log_name, aside)) {
        return sj_fail(error, SJ_EIO,
                       "%s belongs to another file than %s, which was overwritten, and cannot be "
                       "renamed (%s): move it away",
                       log_name, name, strerror(errno));
    }
    sj_log(SJ_LOG_WARN, "database",
           "%s was overwritten while a log was beside it: the log belongs to the file that was "
           "there before, and is kept as %s; calls that only this log has are not in the database",
           name, aside);
    return SJ_OK;
}

sj_status sj_foreign_log_set_aside(const char *path, sj_error *error)
{
    char name[PATH_MAX];
    char log_name[NAME_BYTES];
    sj_database_lock lock;
    sj_status status = SJ_OK;
    if (!find_log(path, name, log_name)) {
        return SJ_OK;
    }
    if (sj_database_lock_acquire(name, &lock) == SJ_OK && is_foreign(name, log_name, lock.file)) {
        status = set_aside(name, log_name, error);
    }
    sj_database_lock_release(&lock);
    return status;
}

sj_status sj_foreign_log_check(const char *path, sj_error *error)
{
    return !sj_foreign_log_exists(path)
               ? SJ_OK
               : sj_fail(error, SJ_ECORRUPT,
                         "%s was overwritten, and %s-wal belongs to the file that was there "
                         "before: move %s-wal away, or start the collector, which does so",
                         path, path, path);
}

void sj_log_base_note(const char *file_name, const sj_file_watch *watch, uint32_t noted[2])
{
    char name[NAME_BYTES];
    log_base base = {.file_bytes = watch->file_bytes};
    const bool is_unchanged = watch->log[2] == 0 && watch->log[3] == 0;
    if (!watch->is_known || !is_unchanged || memcmp(noted, watch->log, SJ_LOG_SALT_BYTES) == 0) {
        return;
    }
    memcpy(noted, watch->log, SJ_LOG_SALT_BYTES);
    memcpy(base.magic, base_magic, sizeof(base.magic));
    memcpy(base.salts, watch->log, sizeof(base.salts));
    memcpy(base.header, watch->header, sizeof(base.header));
    snprintf(name, sizeof(name), "%.*s" SJ_LOG_BASE_END, PATH_MAX, file_name);
    log_base older;
    const bool is_own = access(name, F_OK) != 0 || read_base(file_name, &older);
    const int file = is_own ? open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    if (file >= 0) {
        (void)!write(file, &base, sizeof(base));
        close(file);
    }
}

void sj_log_base_remove(const char *path)
{
    char name[PATH_MAX];
    char other[NAME_BYTES];
    log_base base;
    if (realpath(path, name) == NULL || !read_base(name, &base)) {
        return; /* there is no note, or the user has a file of this name */
    }
    snprintf(other, sizeof(other), "%s-wal", name);
    if (access(other, F_OK) != 0) {
        snprintf(other, sizeof(other), "%s" SJ_LOG_BASE_END, name);
        unlink(other);
    }
}
