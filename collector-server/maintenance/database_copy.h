/* Backups: whole copies of a database, made while others write to it, and put back. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_DATABASE_COPY_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_DATABASE_COPY_H

#include "collector-server/store/verify.h"

typedef struct sj_copied {
    int64_t bytes;          /* the copy's size */
    int64_t sessions;       /* in it */
    int64_t moved_blocks;   /* of the source, blocks that lie in files beside it */
    int64_t missing_blocks; /* of them, blocks that a backup lacks: their files cannot be read */
    sj_error why;           /* the first of these files; empty: none */
} sj_copied;

/* sj_database_backup copies the database `from` as of one moment, pages and changes in its log, to
 * the file `to`. A writer need not wait for it, and it ends however much is written meanwhile. The
 * copy gets its name when it is whole and on the disk. It has no log, so that it can be read in a
 * folder that cannot be written. It holds the bytes of moved blocks in its rows. SJ_OK also when
 * `copied->missing_blocks` is not 0: these refer to their files. SJ_EEXIST: there is a file `to`,
 * or one that SQLite would take for its log; SJ_ENOTFOUND, SJ_ECORRUPT: `from` is missing or no
 * database of Sojourn; SJ_EAGAIN: another process has opened the copy; SJ_EFULL; SJ_EIO. Blocking.
 */
SJ_MUST_CHECK sj_status sj_database_backup(const char *from, const char *to, sj_copied *copied,
                                           sj_error *error);

/* sj_database_restore copies as sj_database_backup does, brings the copy up to date and verifies it
 * (sj_store_verify, marking nothing) before it gets the name `to`. SJ_ECORRUPT: something was
 * found, which `report` was told of, and there is no `to`; that calls are missing which were sent
 * does not count. With `accepts_damage` it gets its name all the same, if the
 * store opens it and every table can be read. Otherwise as
 * sj_database_backup. */
SJ_MUST_CHECK sj_status sj_database_restore(const char *from, const char *to, bool accepts_damage,
                                            void (*report)(void *context,
                                                           const sj_finding *finding),
                                            void *context, sj_copied *copied, sj_error *error);

#endif
