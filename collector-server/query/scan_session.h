/* Loads the session of a block scan (block_scan.h). */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SCAN_SESSION_H
#define SJ_COLLECTOR_SERVER_QUERY_SCAN_SESSION_H

#include "collector-server/query/block_scan.h"

/* Writes the session's clock and modules to scan->session, and the scan's filter in ticks and
 * session-wide function ids. Does nothing if that session is loaded already. Returns SQLITE_OK;
 * SQLITE_NOTFOUND if the session does not exist; SJ_SCAN_NO_CLOCK if its clock is invalid; else
 * SQLite's error. */
int sj_scan_session_enter(sj_block_scan *scan, int64_t session_id);

#endif
