/* The text of `sojourn stalls`. */
#ifndef SJ_COLLECTOR_SERVER_CLI_STALL_REPORT_H
#define SJ_COLLECTOR_SERVER_CLI_STALL_REPORT_H

#include "proto/base/status.h"

#include <sqlite3.h>

/* sj_stall_report_print writes all stalls of a database, whose tables of calls are there, to
 * standard output. SJ_EIO: the database says why. */
SJ_MUST_CHECK sj_status sj_stall_report_print(sqlite3 *database);

#endif
