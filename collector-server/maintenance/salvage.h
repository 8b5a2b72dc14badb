/* Salvage: copies the readable rows of a damaged database to a new one. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_H

#include "collector-server/store/verify.h"

enum { SJ_SALVAGED_NAME_BYTES = 64 };

typedef struct sj_salvaged_table {
    char name[SJ_SALVAGED_NAME_BYTES];
    int64_t saved;   /* number of rows, including those that were dropped later */
    int64_t missing; /* known number of rows that could not be saved */
    /* number of saved rows that were dropped, because they belonged to a lost row */
    int64_t dropped;
    int64_t substitutes; /* number of rows that replace lost ones */
    /* more rows may be missing, because no index shows how many there were, or the table has other
     * columns */
    bool is_unknown;
} sj_salvaged_table;

typedef struct sj_salvaged {
    sj_salvaged_table *tables;
    size_t count;
    int64_t sessions;     /* number of sessions in the new database */
    bool log_is_damaged;  /* the log has committed changes that cannot be read */
    bool log_is_foreign;  /* the log belongs to another file, and was not read */
    sj_verified verified; /* result of verifying the new database */
} sj_salvaged;

/* Reads the rows of the database `from`, skipping damaged pages, and creates a database `to`
 * with them. Does not change `from` or its log. Computes sums from the blocks again.
 *
 * A lost device, module, hook plan or function gets a substitute if other rows need it. Other
 * rows that belonged to a lost row are dropped. Then it verifies `to` (sj_store_verify) and
 * calls `report` for each finding. Returns SJ_OK even if rows are lost; `*salvaged` says so.
 *
 * Returns SJ_ENOTFOUND if there is no file `from`, and SJ_EEXIST if there is a file `to`, or a
 * log of one. Returns SJ_ECORRUPT if the header or the schema of `from` cannot be read, or it is
 * not a Sojourn database. Returns SJ_EAGAIN if a process has `from` open with a log, or has a
 * deleted file `to` open. Returns SJ_EVERSION if a newer Sojourn wrote it, and SJ_EUNSUPPORTED
 * if a development version before 0.1.0 did; SJ_EFULL, SJ_EIO or SJ_ENOMEM. After an error,
 * there is no file `to`.
 *
 * The caller frees `*salvaged` with sj_salvaged_deinit, also after an error. Blocking; no other
 * process may write to `from`. */
SJ_MUST_CHECK sj_status sj_database_salvage(const char *from, const char *to,
                                            void (*report)(void *context,
                                                           const sj_finding *finding),
                                            void *context, sj_salvaged *salvaged, sj_error *error);
void sj_salvaged_deinit(sj_salvaged *salvaged);

/* True if no row is missing, dropped or substituted, no table is `is_unknown`, the log is not
 * damaged, and verifying found nothing. A log of another file does not count. */
bool sj_salvaged_is_whole(const sj_salvaged *salvaged);

#endif
