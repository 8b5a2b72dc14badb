/* A database that is written under another name beside its own and gets its name when it is whole:
 * backups, restored and salvaged databases. Any thread; blocking. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_PART_FILE_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_PART_FILE_H

#include "proto/base/error.h"

#include <limits.h>

enum { SJ_PART_BYTES = PATH_MAX + 16 };

/* sj_part_make makes an empty file beside `to` and writes its name to `part`. SJ_EEXIST: there is a
 * file `to`, or one that SQLite would take for its log; SJ_EINVAL: the name is too long; SJ_EIO. */
SJ_MUST_CHECK sj_status sj_part_make(const char *to, char part[SJ_PART_BYTES], sj_error *error);

/* sj_part_name writes the log of `part` into it, syncs it and renames it to `to`. SJ_EEXIST: a file
 * has got that name meanwhile; SJ_EAGAIN: another process has opened `part`; SJ_EFULL, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_part_name(const char *part, const char *to, sj_error *error);

/* sj_part_remove deletes `part` and its log. */
void sj_part_remove(const char *part);

#endif
