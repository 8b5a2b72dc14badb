/* The bytes of stored blocks, in their rows or in files that their `storage` names:
 * "file:FILE_ID:OFFSET:SIZE:CRC32C", the last in hexadecimal digits. One thread at a time. */
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

/* sj_block_place_read reads a `storage`. SJ_EINVAL: it names no file, or none that can be. */
SJ_MUST_CHECK sj_status sj_moved_block_read(const char *text, sj_moved_block *place);
void sj_moved_block_write(const sj_moved_block *place, char text[SJ_STORAGE_TEXT_BYTES]);

typedef struct sj_block_files sj_block_files;

/* sj_block_files_new: `schema` ("main", or the name of an attached database) is where the rows are;
 * both are borrowed. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_files_new(sqlite3 *database, const char *schema,
                                           sj_block_files **files);
void sj_block_files_free(sj_block_files *files); /* NULL is allowed */

/* sj_block_files_get gives the bytes of a block: `data`, or what `storage` names, which is borrowed
 * until the next call. SJ_EIO: its file is away or cut, SJ_ECORRUPT: has other bytes; both name the
 * file and the session. SJ_ENOTFOUND: there are no bytes. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_files_get(sj_block_files *files, const char *storage,
                                           sj_slice data, sj_slice *bytes, sj_error *error);

/* sj_block_files_get_columns: of two columns of the row that a statement is at. */
SJ_MUST_CHECK sj_status sj_block_files_get_columns(sj_block_files *files, sqlite3_stmt *row,
                                                   int storage, int data, sj_slice *bytes,
                                                   sj_error *error);

#endif
