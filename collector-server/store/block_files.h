/* Reads the bytes of stored blocks, from their rows or from files that their `storage` column
 * names. The column has the form "file:FILE_ID:OFFSET:SIZE:CRC32C"; the checksum is hexadecimal.
 * One thread at a time. */
#ifndef SJ_COLLECTOR_SERVER_STORE_BLOCK_FILES_H
#define SJ_COLLECTOR_SERVER_STORE_BLOCK_FILES_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

enum { SJ_STORAGE_TEXT_BYTES = 96 };

typedef struct sj_moved_block {
    int64_t file_id;
    uint64_t offset;
    uint32_t size, checksum;
} sj_moved_block;

/* Parses a `storage` value. Returns SJ_EINVAL if `text` is not of the form above, or the size is 0
 * or more than SJ_BLOCK_MAX_BYTES. */
SJ_MUST_CHECK sj_status sj_moved_block_read(const char *text, sj_moved_block *place);
void sj_moved_block_write(const sj_moved_block *place, char text[SJ_STORAGE_TEXT_BYTES]);

typedef struct sj_block_files sj_block_files;

/* Creates a reader of the blocks in `schema` of `database` ("main", or the name of an attached
 * database). The reader borrows both. Returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_files_new(sqlite3 *database, const char *schema,
                                           sj_block_files **files);
void sj_block_files_free(sj_block_files *files); /* NULL is allowed */

/* Returns the bytes of a block in `*bytes`: `data` if it is not NULL, else the bytes that `storage`
 * names. Bytes from a file stay valid until the next call.
 *
 * Returns SJ_EIO if `storage` names no file, or the file is missing or too short. Returns
 * SJ_ECORRUPT if the checksum differs. The message names the file and the session. Returns
 * SJ_ENOTFOUND if the block has no bytes, and SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_files_get(sj_block_files *files, const char *storage,
                                           sj_slice data, sj_slice *bytes, sj_error *error);

/* Calls sj_block_files_get with two columns of the current row of a statement. `storage` and `data`
 * are their numbers. Returns the same errors. */
SJ_MUST_CHECK sj_status sj_block_files_get_columns(sj_block_files *files, sqlite3_stmt *row,
                                                   int storage, int data, sj_slice *bytes,
                                                   sj_error *error);

#endif
