/* Work beside the writer, as small transactions with pauses between them. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SLICES_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SLICES_H

#include "proto/base/error.h"
#include "proto/base/progress.h"

#include <sqlite3.h>
#include <stdint.h>

enum { SJ_BLOCKS_A_SLICE = 16 };

/* sj_slice_begin returns the current time. sj_slice_pause lets other connections use the
 * database. It sleeps as long as the transaction that began at that time took, and at least 2
 * ms. */
int64_t sj_slice_begin(void);
void sj_slice_pause(int64_t begun_ns);

/* Runs one statement. Binds `id` to ?1, `limit` to ?2 and `text` (borrowed) to ?3, if the statement
 * has them. Returns SJ_EAGAIN if another writer kept the lock; SJ_EIO, SJ_EFULL or SJ_ENOMEM.
 * Blocking. */
SJ_MUST_CHECK sj_status sj_slices_run(sqlite3 *database, const char *sql, int64_t id, int64_t limit,
                                      const char *text, sj_error *error);

/* Repeats a statement that deletes at most ?2 rows of ?1 until there are none left. Each
 * transaction deletes `piece` rows, is followed by a pause, and is a step of `work`. Errors as for
 * sj_slices_run. */
SJ_MUST_CHECK sj_status sj_slices_delete(sqlite3 *database, const char *sql, int64_t id,
                                         int64_t piece, sj_progress_work work, sj_error *error);

/* Returns free pages to the file system, in small transactions. Errors as for sj_slices_run. */
SJ_MUST_CHECK sj_status sj_slices_give_space_back(sqlite3 *database, sj_error *error);

#endif
