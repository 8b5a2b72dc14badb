/* The clock of a session as the store keeps it: its first tick and the length of a tick. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SESSION_CLOCK_H
#define SJ_COLLECTOR_SERVER_QUERY_SESSION_CLOCK_H

#include "collector-server/query/tick_scale.h"

#include <sqlite3.h>
#include <stddef.h>

/* sj_session_clock_read reads the clock of a session: SQLITE_OK; SQLITE_NOTFOUND when there is no
 * such session; SQLITE_CORRUPT when its clock makes no sense; else what SQLite says.
 * `statement` caches the prepared statement: NULL at first, finalized by the caller. */
int sj_session_clock_read(sqlite3 *database, sqlite3_stmt **statement, int64_t session_id,
                          sj_tick_scale *scale, uint64_t *started_ticks);

#endif
