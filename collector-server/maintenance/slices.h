/* Splits long work on a database into small transactions. Pauses between them let the collector's
 * writer store frames meanwhile. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SLICES_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SLICES_H

#include "proto/base/error.h"
#include "proto/base/progress.h"

#include <sqlite3.h>
#include <stdint.h>

enum { SJ_BLOCKS_A_SLICE = 16 };

/* sj_slice_begin returns the current time (CLOCK_MONOTONIC), for a transaction that begins.
 * sj_slice_pause sleeps as long as that transaction took, and at least 2 ms, so that other
 * connections can use the database. */
int64_t sj_slice_begin(void);
void sj_slice_pause(int64_t begun_ns);

/* Runs one statement. Binds `id` to ?1, `limit` to ?2 and `text` (borrowed) to ?3, if the statement
 * has them. Returns SJ_EAGAIN if another writer kept the lock; SJ_EIO, SJ_EFULL or SJ_ENOMEM.
 * Blocking. */
SJ_MUST_CHECK sj_status sj_slices_run(sqlite3 *database, const char *sql, int64_t id, int64_t limit,
                                      const char *text, sj_error *error);

/* Runs `sql`, which deletes at most ?2 rows of ?1, until it deletes fewer than `piece` rows. ?1 is
 * `id`, ?2 is `piece`. Each run is a transaction and a step of `work`; a pause follows it. Errors
 * as for sj_slices_run. */
SJ_MUST_CHECK sj_status sj_slices_delete(sqlite3 *database, const char *sql, int64_t id,
                                         int64_t piece, sj_progress_work work, sj_error *error);

/* Returns free pages to the file system, in small transactions, until none is left or another
 * writer uses them. Errors as for sj_slices_run. */
SJ_MUST_CHECK sj_status sj_slices_give_space_back(sqlite3 *database, sj_error *error);

#endif
