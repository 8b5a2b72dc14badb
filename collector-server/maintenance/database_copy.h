/* Makes backups, which are whole copies of a database, and restores them. Other connections may
 * write to the database meanwhile. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_DATABASE_COPY_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_DATABASE_COPY_H

#include "collector-server/store/verify.h"

typedef struct sj_copied {
    int64_t bytes;        /* the copy's size */
    int64_t sessions;     /* number of sessions in the copy */
    int64_t moved_blocks; /* number of the source's blocks that are in files */
    /* number of moved blocks that the backup lacks, because their files cannot be read */
    int64_t missing_blocks;
    sj_error why; /* why the first missing block could not be read; empty: none is missing */
} sj_copied;

/* Copies the database `from` to the new file `to`. The copy has the state of one moment, including
 * changes that are only in the log of `from`. Writers do not wait for the copying, and it ends even
 * if they write all the time.
 *
 * The copy gets its name when it is complete and synced. It has no log, so it can be read in a
 * read-only folder. Its rows contain the bytes of moved blocks (block_move.h). A moved block that
 * cannot be read keeps referring to its file. copied->missing_blocks counts such blocks, and the
 * result is still SJ_OK.
 *
 * Returns SJ_EEXIST if there is a file `to`, or one that SQLite would use as its log. Returns
 * SJ_ENOTFOUND if `from` is missing, and SJ_ECORRUPT if it is not a Sojourn database. Returns
 * SJ_EAGAIN if another process has opened the copy, or still has a deleted file `to` open;
 * SJ_EFULL; SJ_EIO. Blocking. */
SJ_MUST_CHECK sj_status sj_database_backup(const char *from, const char *to, sj_copied *copied,
                                           sj_error *error);

/* Copies as sj_database_backup does, but moved blocks stay in their files. Migrates the
 * copy to the current schema and verifies it (sj_store_verify, without marking) before it gets the
 * name `to`.
 *
 * Returns SJ_ECORRUPT, without a file `to`, if there are findings, which are passed to `report`.
 * Calls that a device sent and that are missing do not count as a finding. If `accepts_damage`, the
 * copy gets its name in spite of findings, if the store can open and verify it. Other errors: as
 * sj_database_backup. */
SJ_MUST_CHECK sj_status sj_database_restore(const char *from, const char *to, bool accepts_damage,
                                            void (*report)(void *context,
                                                           const sj_finding *finding),
                                            void *context, sj_copied *copied, sj_error *error);

#endif
