#include "collector-server/maintenance/moved_blocks.h"

#include "collector-server/store/block_files.h"
#include "collector-server/store/database.h"

#include <sqlite3.h>
#include <sys/stat.h>

/* The import is one transaction, without a journal, because an incomplete copy is deleted. */
typedef struct block_import {
    sqlite3 *database;
    sj_block_files *files;
    sqlite3_stmt *next, *update;
    sj_copied *copied;
    sj_error *error;
} block_import;

static sj_status fail_sql(const block_import *work)
{
    const int result = sqlite3_errcode(work->database);
    const sj_status status = sj_database_status(result);
    return sj_fail(work->error, status != SJ_OK ? status : SJ_EIO,
                   "cannot take moved blocks into the copy: %s", sqlite3_errmsg(work->database));
}

static sj_status run(const block_import *work, const char *sql)
{
    return sqlite3_exec(work->database, sql, NULL, NULL, NULL) == SQLITE_OK ? SJ_OK
                                                                            : fail_sql(work);
}

static sj_status open_copy(block_import *work, const char *path)
{
    static const char next_sql[] =
        "SELECT block_id, storage, data FROM blocks WHERE storage <> 'inline' AND block_id > ?1"
        " ORDER BY block_id LIMIT 1";
    static const char update_sql[] =
        "UPDATE blocks SET storage = 'inline', data = ?2 WHERE block_id = ?1";
    if (sqlite3_open_v2(path, &work->database, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(work->database,
                     "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF;"
                     "PRAGMA synchronous = OFF; BEGIN",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(work->database, next_sql, -1, &work->next, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(work->database, update_sql, -1, &work->update, NULL) != SQLITE_OK) {
        return fail_sql(work);
    }
    return sj_block_files_new(work->database, "main", &work->files);
}

/* Reads the block of the current row of `next` and stores its bytes in the row. */
static sj_status import_block(const block_import *work)
{
    sj_slice bytes;
    sj_error why = {0};
    const sj_status status =
        sj_block_files_get_columns(work->files, work->next, 1, 2, &bytes, &why);
    if (status == SJ_ENOMEM) {
        return sj_fail(work->error, status, "no memory to read moved blocks");
    }
    if (status != SJ_OK) {
        if (work->copied->missing_blocks++ == 0) {
            work->copied->why = why;
        }
        return SJ_OK;
    }
    sqlite3_bind_int64(work->update, 1, sqlite3_column_int64(work->next, 0));
    sqlite3_bind_blob64(work->update, 2, bytes.data, bytes.size, SQLITE_STATIC);
    const int result = sqlite3_step(work->update);
    sqlite3_reset(work->update);
    return result == SQLITE_DONE ? SJ_OK : fail_sql(work);
}

static sj_status import_all(const block_import *work)
{
    sj_status status = SJ_OK;
    int64_t passed = 0;
    while (status == SJ_OK) {
        sqlite3_bind_int64(work->next, 1, passed);
        const int result = sqlite3_step(work->next);
        if (result != SQLITE_ROW) {
            status = result == SQLITE_DONE ? SJ_OK : fail_sql(work);
            break;
        }
        passed = sqlite3_column_int64(work->next, 0);
        status = import_block(work);
        sqlite3_reset(work->next);
    }
    return status;
}

static sj_status forget_files(const block_import *work)
{
    return work->copied->missing_blocks == 0
               ? run(work, "DELETE FROM block_files; DELETE FROM block_places")
               : SJ_OK;
}

sj_status sj_moved_blocks_import(const char *path, sj_copied *copied, sj_error *error)
{
    block_import work = {.copied = copied, .error = error};
    struct stat about;
    sj_status status = open_copy(&work, path);
    if (status == SJ_OK) {
        status = import_all(&work);
    }
    if (status == SJ_OK) {
        status = forget_files(&work);
    }
    sqlite3_finalize(work.next);
    sqlite3_finalize(work.update);
    if (status == SJ_OK) {
        status = run(&work, "COMMIT");
    }
    sj_block_files_free(work.files);
    sqlite3_close(work.database);
    if (status == SJ_OK && stat(path, &about) == 0) {
        copied->bytes = about.st_size;
    }
    return status;
}
