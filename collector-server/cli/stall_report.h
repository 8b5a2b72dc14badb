/* The text of `sojourn stalls`, and its JSON. */
#ifndef SJ_COLLECTOR_SERVER_CLI_STALL_REPORT_H
#define SJ_COLLECTOR_SERVER_CLI_STALL_REPORT_H

#include "proto/base/status.h"

#include <jansson.h>
#include <sqlite3.h>

/* Prints all stalls of a database. The connection must have the virtual table `calls`. Fails with
 * SJ_EIO; sqlite3_errmsg then says why. */
SJ_MUST_CHECK sj_status sj_stall_report_print(sqlite3 *database);

/* Stores all stalls as a new JSON array in `*stalls`. On an error, stores NULL. Fails with
 * SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_stall_report_json(sqlite3 *database, json_t **stalls);

#endif
