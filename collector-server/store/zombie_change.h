/* What people decide about a finding of freed memory. */
#ifndef SJ_COLLECTOR_SERVER_STORE_ZOMBIE_CHANGE_H
#define SJ_COLLECTOR_SERVER_STORE_ZOMBIE_CHANGE_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_zombie_change {
    bool is_resolved; /* it is corrected: a report of a later time reopens it */
    const char *note; /* NULL: as it is */
} sj_zombie_change;

/* sj_zombie_change_apply changes one finding of a database that is open for writing. SJ_ENOTFOUND
 * there is no such finding; SJ_EIO. */
SJ_MUST_CHECK sj_status sj_zombie_change_apply(sqlite3 *database, int64_t zombie_id,
                                               const sj_zombie_change *change, sj_error *error);

#endif
