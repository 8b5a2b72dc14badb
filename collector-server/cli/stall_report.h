/* The text of `sojourn stalls`, and its JSON. */
#ifndef SJ_COLLECTOR_SERVER_CLI_STALL_REPORT_H
#define SJ_COLLECTOR_SERVER_CLI_STALL_REPORT_H

#include "proto/base/status.h"

#include <jansson.h>
#include <sqlite3.h>

/* Writes all stalls of a database to standard output. The database must have its tables of calls.
 * Fails with SJ_EIO and the message of the database. */
SJ_MUST_CHECK sj_status sj_stall_report_print(sqlite3 *database);

/* Returns the stalls as an array in `*stalls`. Fails with SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_stall_report_json(sqlite3 *database, json_t **stalls);

#endif
