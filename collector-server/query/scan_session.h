/* The session's side of a walk over blocks; see block_scan.h. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SCAN_SESSION_H
#define SJ_COLLECTOR_SERVER_QUERY_SCAN_SESSION_H

#include "collector-server/query/block_scan.h"

/* sj_scan_session_enter makes a session the walk's own: clock, modules, and its filter's bounds.
 * SQLITE_NOTFOUND, SQLITE_CORRUPT (its clock makes no sense) or what SQLite says. */
int sj_scan_session_enter(sj_block_scan *scan, int64_t session_id);

#endif
