/* Salvage: what can be read of a damaged database, in a new one. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_H

#include "collector-server/store/verify.h"

enum { SJ_SALVAGED_NAME_BYTES = 64 };

typedef struct sj_salvaged_table {
    char name[SJ_SALVAGED_NAME_BYTES];
    int64_t saved;       /* rows, those that were dropped later included */
    int64_t missing;     /* rows that were there and could not be saved, as far as is known */
    int64_t dropped;     /* saved rows that belonged to a lost row, and went */
    int64_t substitutes; /* rows that stand for lost ones */
    bool is_unknown;     /* more rows may be missing: no index tells how many there were */
} sj_salvaged_table;

typedef struct sj_salvaged {
    sj_salvaged_table *tables;
    size_t count;
    int64_t sessions;     /* in the new database */
    bool log_is_damaged;  /* the log has completed changes that cannot be read */
    sj_verified verified; /* the new database */
} sj_salvaged;

/* sj_database_salvage reads the database `from` past its damaged pages and makes a new database
 * `to` of the rows that it could read. It changes neither `from` nor its log. Sums are computed
 * anew from the blocks. A device, module, hook plan or function that is lost and that other rows
 * need gets a substitute; other rows that belonged to a lost row are dropped. At last it verifies
 * `to` (sj_store_verify) and calls `report` for each finding. SJ_OK also when rows are lost:
 * `*salvaged` says so. SJ_ENOTFOUND: no file `from`; SJ_EEXIST: there is a file `to`, or a log of
 * one; SJ_ECORRUPT: the header or the schema of `from` cannot be read, or it is no database of
 * Sojourn; SJ_EVERSION: a newer Sojourn wrote it; SJ_EFULL, SJ_EIO, SJ_ENOMEM. After an error there
 * is no `to`. The caller frees `*salvaged` with sj_salvaged_deinit, also after an error. Blocking;
 * no other process may write to `from`. */
SJ_MUST_CHECK sj_status sj_database_salvage(const char *from, const char *to,
                                            void (*report)(void *context,
                                                           const sj_finding *finding),
                                            void *context, sj_salvaged *salvaged, sj_error *error);
void sj_salvaged_deinit(sj_salvaged *salvaged);

/* sj_salvaged_is_whole returns true if no row is missing or was dropped and nothing was found. */
bool sj_salvaged_is_whole(const sj_salvaged *salvaged);

#endif
