/* Backups: whole copies of a database, made while other connections write to it, and their
 * restoration. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_DATABASE_COPY_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_DATABASE_COPY_H

#include "collector-server/store/verify.h"

typedef struct sj_copied {
    int64_t bytes;        /* the copy's size */
    int64_t sessions;     /* number of sessions in the copy */
    int64_t moved_blocks; /* number of the source's blocks that are in files */
    /* number of moved blocks that the backup lacks, because their files cannot be read */
    int64_t missing_blocks;
    sj_error why; /* the error of the first such file; empty: none */
} sj_copied;

/* Copies the database `from` as of one moment, including the changes in its log, to the file `to`.
 * Writers do not wait for it, and it ends even if they write all the time.
 *
 * The copy gets its name when it is complete and synced. It has no log, so it can be read in a
 * read-only folder. Its rows contain the bytes of moved blocks. If `copied->missing_blocks` is not
 * 0, the result is SJ_OK too; these blocks refer to their files.
 *
 * Returns SJ_EEXIST if there is a file `to`, or one that SQLite would use as its log. Returns
 * SJ_ENOTFOUND if `from` is missing, and SJ_ECORRUPT if it is not a Sojourn database. Returns
 * SJ_EAGAIN if another process has opened the copy, or still has a deleted file `to` open;
 * SJ_EFULL; SJ_EIO. Blocking. */
SJ_MUST_CHECK sj_status sj_database_backup(const char *from, const char *to, sj_copied *copied,
                                           sj_error *error);

/* Copies as sj_database_backup does, but does not read moved blocks from their files. Migrates the
 * copy to the current schema and verifies it (sj_store_verify, without marking) before it gets the
 * name `to`.
 *
 * Returns SJ_ECORRUPT, without a file `to`, if there are findings, which are passed to `report`.
 * Missing calls that were sent do not count as a finding. With `accepts_damage`, the copy gets its
 * name if the store can open and verify it. Other errors: as sj_database_backup. */
SJ_MUST_CHECK sj_status sj_database_restore(const char *from, const char *to, bool accepts_damage,
                                            void (*report)(void *context,
                                                           const sj_finding *finding),
                                            void *context, sj_copied *copied, sj_error *error);

#endif
