/* Design notes
 *
 * A file's row exists before the file, and is marked as needed when the first block refers to
 * it. At that time, the file and its folder have been synced. The file is locked while it is
 * written, so that another process does not sweep it. If the moving process is killed, the
 * kernel releases the lock. Rows are changed a few at a time. If a move ends between two slices,
 * the remaining blocks stay in the database, and a later move puts them into another file. */
#include "collector-server/maintenance/block_move.h"

#include "collector-server/maintenance/slices.h"
#include "collector-server/store/block_files.h"
#include "collector-server/store/block_place.h"
#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/base/crc32c.h"
#include "proto/base/progress.h"
#include "schema/queries/maintenance/block_move.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES = 256 << 20, NAME_BYTES = 80 };

typedef struct moved_row {
    int64_t block_id;
    sj_moved_block where;
} moved_row;

typedef struct block_move {
    sqlite3 *database;
    int64_t session_id;
    const sj_block_place_kind *kind;
    char address[PATH_MAX];
    int64_t place_id;
    char name[NAME_BYTES];
    int64_t file_id;
    sj_place_file file;
    uint64_t size; /* size of the file */
    moved_row *rows;
    size_t count, capacity;
    sj_progress_work work;
    sj_error *error;
} block_move;

static sj_status fail_sql(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_extended_errcode(database)),
                   "cannot move blocks: %s", sqlite3_errmsg(database));
}

/* Runs a statement with the numbers ?1 and ?2 and a text ?3, if it has them. */
static sj_status run_with(sqlite3 *database, const char *sql, int64_t first, int64_t second,
                          const char *text, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK) {
        const int count = sqlite3_bind_parameter_count(statement);
        sqlite3_bind_int64(statement, 1, first);
        if (count >= 2) {
            sqlite3_bind_int64(statement, 2, second);
        }
        if (count >= 3) {
            sqlite3_bind_text(statement, 3, text, -1, SQLITE_STATIC);
        }
        (void)sqlite3_step(statement);
    }
    const sj_status status = statement != NULL && sqlite3_reset(statement) == SQLITE_OK
                                 ? SJ_OK
                                 : fail_sql(database, error);
    sqlite3_finalize(statement);
    return status;
}

static sj_status begin(sqlite3 *database, sj_error *error)
{
    return sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK
               ? SJ_OK
               : fail_sql(database, error);
}

static sj_status end(sqlite3 *database, sj_status status, sj_error *error)
{
    if (status == SJ_OK && sqlite3_exec(database, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        status = fail_sql(database, error);
    }
    if (status != SJ_OK) {
        sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

/* Runs `statement` to its end and resets it. */
static sj_status step_once(sqlite3 *database, sqlite3_stmt *statement, sj_error *error)
{
    const int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    return result == SQLITE_DONE ? SJ_OK : fail_sql(database, error);
}

/* Fails if the session is being recorded or removed. Also fails if sums lack some of its blocks,
 * because the store then reads the blocks. */
static sj_status check_movable(sqlite3 *database, int64_t session_id, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database,
                           "SELECT state IN ('recording', 'removing') OR"
                           " aggregates_valid_before_block IS NOT NULL FROM sessions"
                           " WHERE session_id = ?1",
                           -1, &row, NULL) != SQLITE_OK) {
        return fail_sql(database, error);
    }
    sqlite3_bind_int64(row, 1, session_id);
    const bool found = sqlite3_step(row) == SQLITE_ROW;
    const bool is_busy = found && sqlite3_column_int(row, 0) != 0;
    sqlite3_finalize(row);
    if (!found) {
        return sj_fail(error, SJ_ENOTFOUND, "there is no session %lld", (long long)session_id);
    }
    return is_busy ? sj_fail(error, SJ_EPERM,
                             "session %lld is recording, being removed, or without its sums",
                             (long long)session_id)
                   : SJ_OK;
}

static sj_status read_number(sqlite3 *database, const char *sql, const char *first,
                             const char *second, int64_t *number, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    bool found = false;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_text(row, 1, first, -1, SQLITE_STATIC);
        sqlite3_bind_text(row, 2, second, -1, SQLITE_STATIC);
        found = sqlite3_step(row) == SQLITE_ROW;
        *number = found ? sqlite3_column_int64(row, 0) : 0;
    }
    sqlite3_finalize(row);
    return found ? SJ_OK : fail_sql(database, error);
}

/* Marks files of the session as unneeded if none of its blocks refers to them, as after
 * sj_blocks_return was killed. */
static sj_status note_unneeded(sqlite3 *database, int64_t session_id, sj_error *error)
{
    return run_with(database, sj_block_move_note_unneeded_sql, session_id, 0, NULL, error);
}

static sj_status find_place(block_move *move, const char *folder)
{
    if (realpath(folder, move->address) == NULL) {
        return sj_fail(move->error, SJ_EINVAL, "%s is not a folder", folder);
    }
    SJ_TRY(move->kind->prepare(move->address, move->error));
    return read_number(move->database,
                       "INSERT INTO block_places(kind, address) VALUES (?1, ?2)"
                       " ON CONFLICT DO UPDATE SET kind = kind RETURNING place_id",
                       move->kind->name, move->address, &move->place_id, move->error);
}

/* Inserts the file's row. Its name begins with the session's uuid, for people who list the folder.
 * The rest is random, because copies of this database may use the same folder. */
static sj_status note_file(block_move *move)
{
    sqlite3_stmt *row = NULL;
    const char *name = NULL;
    if (sqlite3_prepare_v2(move->database, sj_block_move_note_file_sql, -1, &row, NULL) ==
        SQLITE_OK) {
        sqlite3_bind_int64(row, 1, move->session_id);
        sqlite3_bind_int64(row, 2, move->place_id);
        if (sqlite3_step(row) == SQLITE_ROW) {
            move->file_id = sqlite3_column_int64(row, 0);
            name = (const char *)sqlite3_column_text(row, 1);
            snprintf(move->name, sizeof(move->name), "%s", name != NULL ? name : "");
        }
    }
    const bool is_noted = row != NULL && sqlite3_reset(row) == SQLITE_OK && name != NULL;
    sqlite3_finalize(row);
    return is_noted ? SJ_OK : fail_sql(move->database, move->error);
}

static sj_status copy_row(block_move *move, sqlite3_stmt *row)
{
    const void *data = sqlite3_column_blob(row, 1);
    const sj_slice bytes = {.data = data, .size = (size_t)sqlite3_column_bytes(row, 1)};
    if (sj_array_reserve(&move->rows, &move->capacity, move->count, 1, sizeof(*move->rows)) !=
        SJ_OK) {
        return sj_fail(move->error, SJ_ENOMEM, "no memory to move blocks");
    }
    SJ_TRY(move->kind->append(&move->file, bytes, move->error));
    move->rows[move->count++] =
        (moved_row){.block_id = sqlite3_column_int64(row, 0),
                    .where = {.file_id = move->file_id,
                              .offset = move->size,
                              .size = (uint32_t)bytes.size,
                              .checksum = sj_crc32c(0, bytes.data, bytes.size)}};
    move->size += bytes.size;
    return SJ_OK;
}

/* Returns the number of the session's blocks that are in the database, or in files. */
static uint64_t count_blocks(sqlite3 *database, int64_t session_id, bool is_inline)
{
    sqlite3_stmt *row = NULL;
    uint64_t count = 0;
    if (sqlite3_prepare_v2(database,
                           "SELECT count(*) FROM streams JOIN blocks USING (stream_id)"
                           " WHERE session_id = ?1 AND (storage = 'inline') = ?2",
                           -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        sqlite3_bind_int(row, 2, is_inline);
        count = sqlite3_step(row) == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
    }
    sqlite3_finalize(row);
    return count;
}

static sj_status copy_next_row(void *context, sqlite3_stmt *row)
{
    block_move *move = context;
    return move->size < FILE_BYTES ? copy_row(move, row) : SJ_EEXIST;
}

/* Fills the file. Blocks beyond FILE_BYTES are left for the next file. */
static sj_status copy_blocks(block_move *move)
{
    const sj_status status = sj_sql_each(
        move->database,
        "SELECT block_id, data FROM streams JOIN blocks USING (stream_id) WHERE session_id = ?1"
        " AND storage = 'inline' AND length(data) > 0 ORDER BY stream_id, first_event",
        SJ_SQL_INTS(move->session_id), copy_next_row, move, move->error);
    return status == SJ_EEXIST ? SJ_OK : status;
}

/* Makes some rows refer to the file. */
static sj_status refer_slice(block_move *move, size_t first, size_t count)
{
    sqlite3_stmt *update = NULL;
    SJ_TRY(run_with(move->database,
                    "UPDATE block_files SET is_needed = 1 WHERE file_id = ?1 AND EXISTS (SELECT 1"
                    " FROM sessions WHERE session_id = ?2 AND uuid = block_files.session_uuid"
                    " AND state <> 'removing')",
                    move->file_id, move->session_id, NULL, move->error));
    if (sqlite3_changes(move->database) != 1) {
        return sj_fail(move->error, SJ_EAGAIN, "session %lld was removed meanwhile",
                       (long long)move->session_id);
    }
    if (sqlite3_prepare_v2(move->database,
                           "UPDATE blocks SET storage = ?2, data = NULL WHERE block_id = ?1"
                           " AND storage = 'inline'",
                           -1, &update, NULL) != SQLITE_OK) {
        return fail_sql(move->database, move->error);
    }
    sj_status status = SJ_OK;
    for (size_t i = first; i < first + count && status == SJ_OK; i++) {
        char text[SJ_STORAGE_TEXT_BYTES];
        sj_moved_block_write(&move->rows[i].where, text);
        sqlite3_bind_int64(update, 1, move->rows[i].block_id);
        sqlite3_bind_text(update, 2, text, -1, SQLITE_STATIC);
        status = step_once(move->database, update, move->error);
    }
    sqlite3_finalize(update);
    return status;
}

static sj_status refer(block_move *move, sj_blocks_moved *moved)
{
    for (size_t first = 0; first < move->count; first += SJ_BLOCKS_A_SLICE) {
        const size_t left = move->count - first;
        const size_t count = left < SJ_BLOCKS_A_SLICE ? left : SJ_BLOCKS_A_SLICE;
        const int64_t begun_ns = sj_slice_begin();
        SJ_TRY(begin(move->database, move->error));
        SJ_TRY(end(move->database, refer_slice(move, first, count), move->error));
        moved->blocks += count;
        for (size_t i = first; i < first + count; i++) {
            sj_progress_step(move->work);
            moved->bytes += move->rows[i].where.size;
        }
        sj_slice_pause(begun_ns);
    }
    return SJ_OK;
}

/* Moves as many blocks as fit in one file. */
static sj_status move_file(block_move *move, sj_blocks_moved *moved)
{
    const uint64_t before = moved->blocks;
    move->count = 0;
    move->size = 0;
    SJ_TRY(note_file(move));
    SJ_TRY(move->kind->create(move->address, move->name, &move->file, move->error));
    sj_status status = copy_blocks(move);
    if (status == SJ_OK && move->count != 0) {
        status = move->kind->keep(move->address, &move->file, move->error);
    }
    if (status == SJ_OK && move->count != 0) {
        status = refer(move, moved);
    }
    move->kind->close(&move->file);
    if (move->count == 0 || moved->blocks == before) { /* a sweep may have deleted the file's row */
        (void)move->kind->remove(move->address, move->name);
    }
    return status;
}

sj_status sj_blocks_move(sqlite3 *database, int64_t session_id, const char *folder,
                         sj_blocks_moved *moved, sj_error *error)
{
    block_move *move = calloc(1, sizeof(*move));
    *moved = (sj_blocks_moved){0};
    if (move == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory to move blocks");
    }
    move->database = database;
    move->session_id = session_id;
    move->kind = &sj_block_place_folder;
    move->error = error;
    sj_status status = check_movable(database, session_id, error);
    if (status == SJ_OK) {
        status = find_place(move, folder);
    }
    if (status == SJ_OK) {
        status = note_unneeded(database, session_id, error);
    }
    move->work = sj_progress_begin(count_blocks(database, session_id, true));
    while (status == SJ_OK && (status = move_file(move, moved)) == SJ_OK && move->count != 0) {
    }
    sj_progress_end(move->work);
    sj_error ignored; /* the first error is reported; the next sweep tries again */
    const sj_status swept = sj_block_files_sweep(database, status == SJ_OK ? error : &ignored);
    free(move->rows);
    free(move);
    return status != SJ_OK  ? status
           : swept != SJ_OK ? swept
                            : sj_slices_give_space_back(database, error);
}

static sj_status return_row(sqlite3 *database, sj_block_files *files, int64_t block_id,
                            sj_blocks_moved *moved, sj_error *error)
{
    sqlite3_stmt *read = NULL;
    sqlite3_stmt *update = NULL;
    sj_slice bytes = {0};
    sj_status status = SJ_OK;
    if (sqlite3_prepare_v2(database, "SELECT storage, data FROM blocks WHERE block_id = ?1", -1,
                           &read, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(database,
                           "UPDATE blocks SET storage = 'inline', data = ?2 WHERE block_id = ?1",
                           -1, &update, NULL) != SQLITE_OK) {
        status = fail_sql(database, error);
    } else {
        sqlite3_bind_int64(read, 1, block_id);
        status = sqlite3_step(read) == SQLITE_ROW
                     ? sj_block_files_get_columns(files, read, 0, 1, &bytes, error)
                     : fail_sql(database, error);
    }
    if (status == SJ_OK) {
        sqlite3_bind_int64(update, 1, block_id);
        sqlite3_bind_blob64(update, 2, bytes.data, bytes.size, SQLITE_STATIC);
        status = step_once(database, update, error);
        moved->blocks++;
        moved->bytes += bytes.size;
    }
    sqlite3_finalize(read);
    sqlite3_finalize(update);
    return status;
}

/* Returns the first blocks of a session that are in files to the database. Sets `*count` to their
 * number. */
static sj_status return_slice(sqlite3 *database, sj_block_files *files, int64_t session_id,
                              size_t *count, sj_blocks_moved *moved, sj_error *error)
{
    sj_sql_numbers ids = {0};
    SJ_TRY(begin(database, error));
    sj_status status =
        sj_sql_list_numbers(database,
                            "SELECT block_id FROM streams JOIN blocks USING (stream_id)"
                            " WHERE session_id = ?1 AND storage <> 'inline'"
                            " ORDER BY stream_id, first_event LIMIT ?2",
                            SJ_SQL_INTS(session_id, SJ_BLOCKS_A_SLICE), &ids, error);
    for (size_t i = 0; i < ids.count && status == SJ_OK; i++) {
        status = return_row(database, files, ids.values[i], moved, error);
    }
    *count = ids.count;
    free(ids.values);
    return end(database, status, error);
}

sj_status sj_blocks_return(sqlite3 *database, int64_t session_id, sj_blocks_moved *moved,
                           sj_error *error)
{
    sj_block_files *files = NULL;
    size_t count = 0;
    *moved = (sj_blocks_moved){0};
    if (sj_block_files_new(database, "main", &files) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "no memory to move blocks");
    }
    sj_status status;
    const sj_progress_work work = sj_progress_begin(count_blocks(database, session_id, false));
    do {
        const int64_t begun_ns = sj_slice_begin();
        status = return_slice(database, files, session_id, &count, moved, error);
        sj_progress_reach(work, moved->blocks);
        sj_slice_pause(begun_ns);
    } while (status == SJ_OK && count != 0);
    sj_progress_end(work);
    sj_block_files_free(files);
    if (status == SJ_OK) {
        status = note_unneeded(database, session_id, error);
    }
    return status == SJ_OK ? sj_block_files_sweep(database, error) : status;
}

sj_status sj_block_files_sweep(sqlite3 *database, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    int64_t passed = 0;
    int result = sqlite3_prepare_v2(database,
                                    "SELECT f.file_id, f.name, p.kind, p.address FROM block_files"
                                    " AS f JOIN block_places AS p USING (place_id)"
                                    " WHERE is_needed = 0 AND file_id > ?1 ORDER BY file_id",
                                    -1, &row, NULL);
    sj_status status = result == SQLITE_OK ? SJ_OK : fail_sql(database, error);
    /* Resets the query before it writes, because an open reader would keep the log from being
     * reused. */
    while (status == SJ_OK) {
        sqlite3_bind_int64(row, 1, passed);
        if ((result = sqlite3_step(row)) != SQLITE_ROW) {
            status = result == SQLITE_DONE ? SJ_OK : fail_sql(database, error);
            break;
        }
        const sj_block_place_kind *kind =
            sj_block_place_find((const char *)sqlite3_column_text(row, 2));
        passed = sqlite3_column_int64(row, 0);
        const bool is_gone =
            kind != NULL && kind->remove((const char *)sqlite3_column_text(row, 3),
                                         (const char *)sqlite3_column_text(row, 1)) == SJ_OK;
        sqlite3_reset(row);
        if (is_gone) {
            status =
                run_with(database, "DELETE FROM block_files WHERE file_id = ?1 AND is_needed = 0",
                         passed, 0, NULL, error);
        }
    }
    sqlite3_finalize(row);
    return status;
}
