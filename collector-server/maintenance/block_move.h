/* Moves blocks of a session from the database into files of a folder, and back. If a process is
 * killed meanwhile, each block can still be read from the database or from a file. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_BLOCK_MOVE_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_BLOCK_MOVE_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_blocks_moved {
    uint64_t blocks, bytes;
} sj_blocks_moved;

/* Moves the blocks of an ended session from the database into files of `folder`. Copies and syncs
 * the blocks, and then makes their rows refer to the copies, in small transactions. `database` was
 * opened with SJ_DATABASE_WRITE; other connections may write meanwhile. Returns SJ_ENOTFOUND if the
 * session does not exist. Returns SJ_EPERM if the session is being recorded or removed, or its
 * aggregates are not written. Returns SJ_EAGAIN if the session was removed meanwhile, and SJ_EINVAL
 * if `folder` is not a folder. Returns SJ_EFULL, SJ_EIO or SJ_ENOMEM; blocks that were not moved
 * stay in the database. Blocking. */
SJ_MUST_CHECK sj_status sj_blocks_move(sqlite3 *database, int64_t session_id, const char *folder,
                                       sj_blocks_moved *moved, sj_error *error);

/* Moves the blocks of a session from files back into the database. Returns SJ_EIO or SJ_ECORRUPT if
 * a file is missing or damaged. */
SJ_MUST_CHECK sj_status sj_blocks_return(sqlite3 *database, int64_t session_id,
                                         sj_blocks_moved *moved, sj_error *error);

/* Deletes files of moved blocks that no block refers to any more. If a file cannot be deleted now,
 * the next call tries again. Returns an error of the database (sj_database_status). */
SJ_MUST_CHECK sj_status sj_block_files_sweep(sqlite3 *database, sj_error *error);

#endif
