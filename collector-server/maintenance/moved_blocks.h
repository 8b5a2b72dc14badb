/* The bytes of moved blocks, taken into the rows of a copy of the database. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_MOVED_BLOCKS_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_MOVED_BLOCKS_H

#include "collector-server/maintenance/database_copy.h"

/* sj_moved_blocks_take_in stores the bytes of all moved blocks of the copy `path` in their rows and
 * forgets their files; it deletes no file. It counts blocks whose file cannot be read in
 * `copied->missing_blocks`, and names the first of them in `copied->why`: these keep referring to
 * their file. Sets `copied->bytes` anew. No other process has opened the copy. SJ_EFULL, SJ_EIO,
 * SJ_ECORRUPT, SJ_ENOMEM. Blocking. */
SJ_MUST_CHECK sj_status sj_moved_blocks_take_in(const char *path, sj_copied *copied,
                                                sj_error *error);

#endif
