/* Work beside the writer, in transactions with pauses between them. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SLICES_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SLICES_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

enum { SJ_BLOCKS_A_SLICE = 16 };

/* sj_slice_begin returns the time, for sj_slice_pause, which leaves the database to others for as
 * long as a transaction that began then had it. */
int64_t sj_slice_begin(void);
void sj_slice_pause(int64_t begun_ns);

/* sj_slices_give_space_back gives free pages back to the file system. */
SJ_MUST_CHECK sj_status sj_slices_give_space_back(sqlite3 *database, sj_error *error);

#endif
