/* Removes rows that no session refers to any more: hook plans, and modules with their functions. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_ORPHANS_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_ORPHANS_H

#include "proto/base/error.h"

#include <sqlite3.h>

/* Removes all orphans, in small transactions with pauses between them. If the process is
 * killed, the next call continues. `database` was opened with SJ_DATABASE_WRITE and is not in a
 * transaction. Returns SJ_EAGAIN if another writer kept the lock; SJ_EIO, SJ_EFULL or SJ_ENOMEM.
 * Blocking. */
SJ_MUST_CHECK sj_status sj_orphans_remove(sqlite3 *database, sj_error *error);

#endif
