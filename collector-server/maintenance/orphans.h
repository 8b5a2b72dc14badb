/* What no session refers to any more: hook plans, and modules with their functions. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_ORPHANS_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_ORPHANS_H

#include "proto/base/error.h"

#include <sqlite3.h>

/* sj_orphans_remove removes all of them, in small transactions with pauses between them; killed at
 * any point, the next call goes on. `database` was opened with SJ_DATABASE_WRITE and holds no
 * transaction. SJ_EAGAIN: another writer did not let go; SJ_EIO, SJ_EFULL, SJ_ENOMEM. Blocking. */
SJ_MUST_CHECK sj_status sj_orphans_remove(sqlite3 *database, sj_error *error);

#endif
