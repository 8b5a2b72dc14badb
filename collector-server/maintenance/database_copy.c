/* Design notes
 *
 * SQLite's backup restarts whenever another process has written, so it would not end under load.
 * Here, the source's connection stays in a read transaction all the time. So the copy shows the
 * start of the transaction, and never restarts. The log grows meanwhile, because the collector
 * cannot reuse it.
 *
 * The copy has the bytes of moved blocks in its rows. Two databases must not share a file, because
 * a file that one of them no longer needs is deleted.
 *
 * A copy gets its name as a file without a log. If the file were marked as one with a log, each
 * reader would create log files beside it, which fails in a read-only folder. */
#include "collector-server/maintenance/database_copy.h"

#include "collector-server/maintenance/moved_blocks.h"
#include "collector-server/maintenance/part_file.h"
#include "collector-server/store/database.h"
#include "collector-server/store/foreign_log.h"
#include "proto/base/progress.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEP_PAGES = 256 };

static sj_status get_number(sqlite3 *database, const char *sql, int64_t *number)
{
    sqlite3_stmt *row = NULL;
    *number = 0;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        return SJ_EIO;
    }
    const bool is_there = sqlite3_step(row) == SQLITE_ROW;
    if (is_there) {
        *number = sqlite3_column_int64(row, 0);
    }
    return sqlite3_finalize(row) == SQLITE_OK && is_there ? SJ_OK : SJ_EIO;
}

/* Begins the transaction for the copy. Reads a page, so that the snapshot shows this moment. */
static sj_status begin_reading(sqlite3 *source, const char *from, int64_t *id, sj_error *error)
{
    sj_database_set_patience(source, true);
    if (sqlite3_exec(source, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
        get_number(source, "PRAGMA application_id", id) != SJ_OK) {
        return sj_fail(error, sj_database_status(sqlite3_errcode(source)), "cannot read %s: %s",
                       from, sqlite3_errmsg(source));
    }
    return SJ_OK;
}

/* Returns the flags to open the source. If there is a log, the source is opened read-only, so that
 * nothing is written into it. If there is none, a read-only connection would leave log files
 * behind. A writable one removes them when it is closed as the last one. */
static int source_flags(const char *from)
{
    char log[PATH_MAX + 16];
    snprintf(log, sizeof(log), "%s-wal", from);
    return access(log, F_OK) == 0 ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
}

static sj_status open_source(const char *from, sqlite3 **source, sj_error *error)
{
    int64_t id = 0;
    int64_t tables = 0;
    if (access(from, R_OK) != 0) {
        return sj_fail(error, errno == ENOENT ? SJ_ENOTFOUND : SJ_EIO, "cannot read %s: %s", from,
                       strerror(errno));
    }
    SJ_TRY(sj_foreign_log_check(from, error));
    if (sqlite3_open_v2(from, source, source_flags(from), NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot open %s: %s", from, sqlite3_errmsg(*source));
    }
    sj_status status = begin_reading(*source, from, &id, error);
    if (status != SJ_OK && sj_database_lacks_log_files(*source)) {
        sqlite3_close(*source);
        SJ_TRY(sj_database_open_frozen(from, source, error));
        status = begin_reading(*source, from, &id, error);
    }
    SJ_TRY(status);
    SJ_TRY(sj_database_check_application(id, from, error));
    if (get_number(*source, "SELECT count(*) FROM sqlite_schema", &tables) != SJ_OK ||
        tables == 0) {
        return sj_fail(error, SJ_ECORRUPT, "%s is not a database of Sojourn", from);
    }
    return SJ_OK;
}

static void describe(sqlite3 *source, sj_copied *copied)
{
    int64_t pages = 0;
    int64_t page_bytes = 0;
    (void)!get_number(source, "PRAGMA page_count", &pages);
    (void)!get_number(source, "PRAGMA page_size", &page_bytes);
    copied->bytes = pages * page_bytes;
    (void)!get_number(source, "SELECT count(*) FROM sessions", &copied->sessions);
    (void)!get_number(source, "SELECT count(*) FROM blocks WHERE storage <> 'inline'",
                      &copied->moved_blocks);
}

static int copy_pages(sqlite3 *source, sqlite3 *target)
{
    sqlite3_backup *backup = sqlite3_backup_init(target, "main", source, "main");
    if (backup == NULL) {
        return sqlite3_errcode(target);
    }
    int result = sqlite3_backup_step(backup, STEP_PAGES);
    const sj_progress_work work = sj_progress_begin((uint64_t)sqlite3_backup_pagecount(backup));
    while (result == SQLITE_OK) {
        sj_progress_reach(
            work, (uint64_t)(sqlite3_backup_pagecount(backup) - sqlite3_backup_remaining(backup)));
        result = sqlite3_backup_step(backup, STEP_PAGES);
    }
    sj_progress_end(work);
    const int finished = sqlite3_backup_finish(backup);
    return result == SQLITE_DONE ? finished : result;
}

/* Copies into an empty file that no other process knows. Uses no journal, because an incomplete
 * copy is deleted. */
static sj_status copy_into(const char *from, const char *part, sj_copied *copied, sj_error *error)
{
    sqlite3 *source = NULL;
    sqlite3 *target = NULL;
    sj_status status = open_source(from, &source, error);
    if (status == SJ_OK) {
        describe(source, copied);
        int result = sqlite3_open_v2(part, &target, SQLITE_OPEN_READWRITE, NULL);
        if (result == SQLITE_OK) {
            sqlite3_exec(target, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL,
                         NULL);
            result = copy_pages(source, target);
        }
        if (result != SQLITE_OK) {
            status = sj_fail(error, sj_database_status(result), "cannot copy %s: %s", from,
                             sqlite3_errstr(result));
        }
    }
    sqlite3_close(target);
    sqlite3_close(source);
    return status;
}

sj_status sj_database_backup(const char *from, const char *to, sj_copied *copied, sj_error *error)
{
    char part[SJ_PART_BYTES];
    *copied = (sj_copied){0};
    SJ_TRY(sj_part_make(to, part, error));
    sj_status status = copy_into(from, part, copied, error);
    if (status == SJ_OK && copied->moved_blocks != 0) {
        status = sj_moved_blocks_import(part, copied, error);
    }
    if (status == SJ_OK) {
        status = sj_part_name(part, to, error);
    }
    if (status != SJ_OK) {
        sj_part_remove(part);
    }
    return status;
}

/* Opens the copy as a collector does, which migrates it, and verifies it. */
static sj_status verify_part(const char *part, const sj_verify_options *options,
                             bool accepts_damage, sj_error *error)
{
    const sj_store_options sink = {.path = part};
    sj_store *store = NULL;
    sj_verified verified = {0};
    SJ_TRY(sj_store_open(&sink, &store, error));
    sj_status status = sj_store_verify(store, options, &verified, error);
    sj_store_close(store);
    const uint64_t findings = verified.bad_blocks + verified.other - verified.missing;
    if (status == SJ_OK && findings != 0 && !accepts_damage) {
        status = sj_fail(error, SJ_ECORRUPT, "the backup is damaged; nothing was restored");
    }
    return status;
}

sj_status sj_database_restore(const char *from, const char *to, bool accepts_damage,
                              void (*report)(void *context, const sj_finding *finding),
                              void *context, sj_copied *copied, sj_error *error)
{
    char part[SJ_PART_BYTES];
    const sj_verify_options options = {.check_only = true, .report = report, .context = context};
    *copied = (sj_copied){0};
    SJ_TRY(sj_part_make(to, part, error));
    sj_status status = copy_into(from, part, copied, error);
    if (status == SJ_OK) {
        status = verify_part(part, &options, accepts_damage, error);
    }
    if (status == SJ_OK) {
        status = sj_part_name(part, to, error);
    }
    if (status != SJ_OK) {
        sj_part_remove(part);
    }
    return status;
}
