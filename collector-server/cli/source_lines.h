/* The SQL function source_line: where functions are declared, as far as this machine knows. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SOURCE_LINES_H
#define SJ_COLLECTOR_SERVER_CLI_SOURCE_LINES_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Adds source_line(function_id) to the connection. It returns FILE:LINE of the function's
 * declaration, or NULL. The source is what `sojourn symbols` added, else the debug data of the
 * module or of its separate debug file. That file must be on this machine and have the module's
 * build-id. The function opens files that the database names, so only commands that a user runs may
 * register it. Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_source_lines_register(sqlite3 *database, sj_error *error);

/* True if source_line returns a line for one of the functions that took the most time in the
 * session. */
bool sj_source_lines_exist(sqlite3 *database, int64_t session_id);

#endif
