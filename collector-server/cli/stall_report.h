/* The text of `sojourn stalls`, and its JSON. */
#ifndef SJ_COLLECTOR_SERVER_CLI_STALL_REPORT_H
#define SJ_COLLECTOR_SERVER_CLI_STALL_REPORT_H

#include "proto/base/status.h"

#include <jansson.h>
#include <sqlite3.h>

/* sj_stall_report_print writes all stalls of a database, whose tables of calls are there, to
 * standard output. SJ_EIO: the database says why. */
SJ_MUST_CHECK sj_status sj_stall_report_print(sqlite3 *database);

/* sj_stall_report_json gives them as an array. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_stall_report_json(sqlite3 *database, json_t **stalls);

#endif
