/* Stores the bytes of moved blocks (block_move.h) in the rows of a copy of the database. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_MOVED_BLOCKS_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_MOVED_BLOCKS_H

#include "collector-server/maintenance/database_copy.h"

/* Stores the bytes of all moved blocks of the copy `path` in their rows, which then do not refer to
 * the files any more. Does not delete the files: the original database needs them.
 *
 * Blocks whose file cannot be read keep referring to their file. Counts them in
 * copied->missing_blocks, and stores the first error in copied->why. Updates copied->bytes. No
 * other process may have opened the copy. Returns SJ_EFULL, SJ_EIO, SJ_ECORRUPT or SJ_ENOMEM.
 * Blocking. */
SJ_MUST_CHECK sj_status sj_moved_blocks_import(const char *path, sj_copied *copied,
                                               sj_error *error);

#endif
