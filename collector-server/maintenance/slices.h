/* Work beside the writer, in transactions with pauses between them. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SLICES_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SLICES_H

#include "proto/base/error.h"
#include "proto/base/progress.h"

#include <sqlite3.h>
#include <stdint.h>

enum { SJ_BLOCKS_A_SLICE = 16 };

/* sj_slice_begin returns the time, for sj_slice_pause, which leaves the database to others for as
 * long as a transaction that began then had it. */
int64_t sj_slice_begin(void);
void sj_slice_pause(int64_t begun_ns);

/* sj_slices_run runs one statement with `id` as ?1, `limit` as ?2 and `text`, which is borrowed, as
 * ?3, of those that it has. SJ_EAGAIN: another writer did not let go; SJ_EIO, SJ_EFULL, SJ_ENOMEM.
 * Blocking. */
SJ_MUST_CHECK sj_status sj_slices_run(sqlite3 *database, const char *sql, int64_t id, int64_t limit,
                                      const char *text, sj_error *error);

/* sj_slices_delete repeats a statement that deletes at most ?2 rows of ?1, `piece` rows a
 * transaction with a pause behind each, until there are no more. Each is a step of `work`. As
 * sj_slices_run. */
SJ_MUST_CHECK sj_status sj_slices_delete(sqlite3 *database, const char *sql, int64_t id,
                                         int64_t piece, sj_progress_work work, sj_error *error);

/* sj_slices_give_space_back gives free pages back to the file system. */
SJ_MUST_CHECK sj_status sj_slices_give_space_back(sqlite3 *database, sj_error *error);

#endif
