/* For databases that are written under a temporary name and renamed when they are complete:
 * backups, restored and salvaged databases. Thread-safe; blocking. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_PART_FILE_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_PART_FILE_H

#include "proto/base/error.h"

#include <limits.h>

enum { SJ_PART_BYTES = PATH_MAX + 16 };

/* Creates an empty file beside `to` and writes its name to `part`. Returns SJ_EEXIST if there is a
 * file `to`, or a file that SQLite would use as the log of `to`. Returns SJ_EAGAIN if a process
 * still has a deleted file `to` open (sj_deleted_file_holder). Returns SJ_EINVAL if the name is too
 * long; SJ_EIO. */
SJ_MUST_CHECK sj_status sj_part_make(const char *to, char part[SJ_PART_BYTES], sj_error *error);

/* Writes the log of `part` into `part`, syncs `part` and renames it to `to`. Returns SJ_EEXIST
 * if a file `to` or its log was created meanwhile. Returns SJ_EAGAIN if another process has opened
 * `part`, or has a deleted file `to` open; SJ_EFULL or SJ_EIO. After an error, `part` may still
 * exist. */
SJ_MUST_CHECK sj_status sj_part_name(const char *part, const char *to, sj_error *error);

/* Deletes `part` and its log, if they exist. */
void sj_part_remove(const char *part);

#endif
