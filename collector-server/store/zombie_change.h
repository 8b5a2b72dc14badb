/* Changes that people make to a finding of freed memory. */
#ifndef SJ_COLLECTOR_SERVER_STORE_ZOMBIE_CHANGE_H
#define SJ_COLLECTOR_SERVER_STORE_ZOMBIE_CHANGE_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_zombie_change {
    /* true: marks the finding as resolved; a later report reopens it. false: keeps its state. */
    bool is_resolved;
    const char *note; /* NULL: keep the note */
} sj_zombie_change;

/* Changes one finding of a database that is open for writing. Returns SJ_ENOTFOUND if there is no
 * such finding, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_zombie_change_apply(sqlite3 *database, int64_t zombie_id,
                                               const sj_zombie_change *change, sj_error *error);

#endif
