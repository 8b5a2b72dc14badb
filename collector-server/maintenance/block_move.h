/* Blocks of a session out of the database into files of a folder, and back. Whoever is killed
 * meanwhile, each block can be read from one of both. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_BLOCK_MOVE_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_BLOCK_MOVE_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_blocks_moved {
    uint64_t blocks, bytes;
} sj_blocks_moved;

/* sj_blocks_move moves what is in the database of a session that has ended: copies, syncs, and then
 * lets the rows refer to the copies, in small transactions; `database` is a writer's, others may
 * write meanwhile. SJ_EPERM: it is recording, or its aggregates are not written; SJ_EINVAL: not a
 * folder; SJ_EFULL, SJ_EIO: what was not moved is where it was. Blocking. */
SJ_MUST_CHECK sj_status sj_blocks_move(sqlite3 *database, int64_t session_id, const char *folder,
                                       sj_blocks_moved *moved, sj_error *error);

/* sj_blocks_return takes them back. SJ_EIO, SJ_ECORRUPT: a file is away or damaged. */
SJ_MUST_CHECK sj_status sj_blocks_return(sqlite3 *database, int64_t session_id,
                                         sj_blocks_moved *moved, sj_error *error);

/* sj_block_files_sweep deletes files that no block refers to, where their places can be reached;
 * the others are looked for the next time. */
SJ_MUST_CHECK sj_status sj_block_files_sweep(sqlite3 *database, sj_error *error);

#endif
