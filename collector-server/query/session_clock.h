/* The clock of a session in the store: its first tick and the length of a tick. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SESSION_CLOCK_H
#define SJ_COLLECTOR_SERVER_QUERY_SESSION_CLOCK_H

#include "collector-server/query/scan_codes.h"
#include "collector-server/query/tick_scale.h"

#include <sqlite3.h>
#include <stddef.h>

/* Writes the length of a tick to `scale` and the session's first tick to `started_ticks`. Returns
 * SQLITE_OK, SQLITE_NOTFOUND if the session does not exist, SJ_SCAN_NO_CLOCK if its clock is
 * invalid, or SQLite's error. `*statement` caches the prepared statement. The caller sets it to
 * NULL before the first call and finalizes it after the last. */
int sj_session_clock_read(sqlite3 *database, sqlite3_stmt **statement, int64_t session_id,
                          sj_tick_scale *scale, uint64_t *started_ticks);

#endif
