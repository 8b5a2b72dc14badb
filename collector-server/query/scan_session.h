/* The session of a walk over blocks; see block_scan.h. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SCAN_SESSION_H
#define SJ_COLLECTOR_SERVER_QUERY_SCAN_SESSION_H

#include "collector-server/query/block_scan.h"

/* Loads a session for the walk: its clock, its modules, and the filter's limits. Returns
 * SQLITE_NOTFOUND, SJ_SCAN_NO_CLOCK, or SQLite's error. */
int sj_scan_session_enter(sj_block_scan *scan, int64_t session_id);

#endif
