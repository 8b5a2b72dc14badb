#include "collector-server/maintenance/salvage_source.h"

#include "collector-server/store/database.h"
#include "collector-server/store/database_lock.h"
#include "collector-server/store/foreign_log.h"
#include "collector-server/store/log_frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 20 };

static const char *const log_ends[] = {"-wal", "-journal"};

static bool has_bytes(const char *path, const char *end)
{
    char name[SJ_PART_BYTES];
    struct stat about;
    snprintf(name, sizeof(name), "%s%s", path, end);
    return stat(name, &about) == 0 && about.st_size > 0;
}

static sj_status copy_bytes(int from, int to)
{
    ssize_t copied;
    do {
        copied = copy_file_range(from, NULL, to, NULL, COPY_BYTES, 0);
    } while (copied > 0);
    return copied == 0 ? SJ_OK : errno == ENOSPC || errno == EDQUOT ? SJ_EFULL : SJ_EIO;
}

/* Copies the file `path` with the suffix `end`, if it exists, to `copy` with the same suffix. */
static sj_status copy_file(const char *path, const char *copy, const char *end, sj_error *error)
{
    char from_name[SJ_PART_BYTES];
    char to_name[SJ_PART_BYTES];
    if (snprintf(from_name, sizeof(from_name), "%s%s", path, end) >= (int)sizeof(from_name) ||
        snprintf(to_name, sizeof(to_name), "%s%s", copy, end) >= (int)sizeof(to_name)) {
        return sj_fail(error, SJ_EINVAL, "the name %.60s... is too long", path);
    }
    const int from = open(from_name, O_RDONLY | O_CLOEXEC);
    if (from < 0 && errno == ENOENT) {
        return SJ_OK;
    }
    const int to = from < 0 ? -1 : open(to_name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    sj_status status = to < 0 ? SJ_EIO : copy_bytes(from, to);
    if (status != SJ_OK) {
        sj_fail(error, status, "cannot copy %s: %s", from_name, strerror(errno));
    }
    if (from >= 0) {
        close(from);
    }
    if (to >= 0) {
        close(to);
    }
    return status;
}

static sj_status copy_all(const char *path, const char *to, sj_salvage_source *source,
                          sj_error *error)
{
    SJ_TRY(sj_part_make(to, source->copy, error));
    SJ_TRY(copy_file(path, source->copy, "", error));
    for (size_t i = 0; i < sizeof(log_ends) / sizeof(log_ends[0]); ++i) {
        SJ_TRY(copy_file(path, source->copy, log_ends[i], error));
    }
    const int result = sqlite3_open_v2(source->copy, &source->database,
                                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    return result == SQLITE_OK ? SJ_OK
                               : sj_fail(error, sj_database_status(result), "cannot open %s: %s",
                                         source->copy, sqlite3_errstr(result));
}

/* True if the log commits a change after its first `readable` frames: then one of the frames is
 * damaged. Frames of an earlier use of the file have other salts. */
static bool has_more_changes(int log, uint64_t readable)
{
    uint8_t header[SJ_LOG_HEADER_BYTES];
    uint8_t frame[SJ_LOG_FRAME_HEADER_BYTES];
    if (pread(log, header, sizeof(header), 0) != (ssize_t)sizeof(header)) {
        return false; /* no frame was ever complete */
    }
    if (!sj_log_header_is_sound(header)) {
        return true;
    }
    const uint64_t frame_bytes = SJ_LOG_FRAME_HEADER_BYTES + (uint64_t)sj_log_word(header + 8);
    off_t at = (off_t)(SJ_LOG_HEADER_BYTES + readable * frame_bytes);
    while (pread(log, frame, sizeof(frame), at) == (ssize_t)sizeof(frame)) {
        const bool ends_change = sj_log_word(frame + 4) != 0;
        if (ends_change && memcmp(frame + 8, header + 16, 8) == 0) {
            return true;
        }
        at += (off_t)frame_bytes;
    }
    return false;
}

/* Writes the log's changes into the copy. Notes whether the log has more changes than SQLite can
 * read. */
static void read_log(const char *path, sj_salvage_source *source)
{
    char name[SJ_PART_BYTES];
    sqlite3_stmt *row = NULL;
    uint64_t readable = 0;
    if (sqlite3_prepare_v2(source->database, "PRAGMA wal_checkpoint", -1, &row, NULL) ==
            SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int64(row, 1) > 0) {
        readable = (uint64_t)sqlite3_column_int64(row, 1);
    }
    sqlite3_finalize(row);
    snprintf(name, sizeof(name), "%s-wal", path);
    const int log = open(name, O_RDONLY | O_CLOEXEC);
    if (log >= 0) {
        source->log_is_damaged = has_more_changes(log, readable);
        close(log);
    }
}

static sj_status read_number(sqlite3 *database, const char *sql, int64_t *number)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(database, sql, -1, &row, NULL);
    if (result == SQLITE_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        *number = sqlite3_column_int64(row, 0);
    }
    sqlite3_finalize(row);
    return result == SQLITE_ROW ? SJ_OK : SJ_ECORRUPT;
}

/* Checks what SQLite needs before it can read any row. */
static sj_status identify(const char *path, sj_salvage_source *source, sj_error *error)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t tables = 0;
    /* With writable_schema, SQLite can open a file that is shorter than its header says. */
    sqlite3_exec(source->database, "PRAGMA writable_schema=ON; PRAGMA cell_size_check=ON", NULL,
                 NULL, NULL);
    if (source->copy[0] != '\0') {
        read_log(path, source);
    }
    if (read_number(source->database, "PRAGMA application_id", &application) != SJ_OK ||
        read_number(source->database, "PRAGMA user_version", &version) != SJ_OK ||
        read_number(source->database, "SELECT count(*) FROM sqlite_schema", &tables) != SJ_OK) {
        return sj_fail(error, SJ_ECORRUPT,
                       "the beginning of %s, which says where its tables are, is damaged (%s): "
                       "nothing can be salvaged; put a backup in place with `sojourn restore`",
                       path, sqlite3_errmsg(source->database));
    }
    if (sj_database_check_application(application, path, error) == SJ_EUNSUPPORTED) {
        return SJ_EUNSUPPORTED;
    }
    if (application != SJ_DATABASE_APPLICATION_ID || version < 1 || tables == 0) {
        return sj_fail(error, SJ_ECORRUPT,
                       "%s is not a database of Sojourn, or its header is damaged; put a backup in "
                       "place with `sojourn restore`",
                       path);
    }
    if (version > sj_database_version()) {
        return sj_fail(error, SJ_EVERSION,
                       "%s was written by a newer Sojourn (schema %lld, this one reads up to %d): "
                       "install a newer one",
                       path, (long long)version, sj_database_version());
    }
    source->version = (int)version;
    return SJ_OK;
}

sj_status sj_salvage_source_open(const char *path, const char *to, sj_salvage_source *source,
                                 sj_error *error)
{
    *source = (sj_salvage_source){0};
    if (access(path, R_OK) != 0) {
        return sj_fail(error, errno == ENOENT ? SJ_ENOTFOUND : SJ_EIO, "cannot read %s: %s", path,
                       strerror(errno));
    }
    SJ_TRY(sj_database_check_unused(path, error));
    source->log_is_foreign = sj_foreign_log_exists(path);
    const bool has_log =
        !source->log_is_foreign && (has_bytes(path, log_ends[0]) || has_bytes(path, log_ends[1]));
    SJ_TRY(has_log ? copy_all(path, to, source, error)
                   : sj_database_open_unchanging(path, &source->database, error));
    return identify(path, source, error);
}

void sj_salvage_source_close(sj_salvage_source *source)
{
    sqlite3_close(source->database);
    if (source->copy[0] != '\0') {
        sj_part_remove(source->copy);
    }
    *source = (sj_salvage_source){0};
}
