/* The SQL function source_line: file and line of a function's declaration. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SOURCE_LINES_H
#define SJ_COLLECTOR_SERVER_CLI_SOURCE_LINES_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Adds the SQL function source_line(function_id) to the connection. It returns FILE:LINE of the
 * function's declaration, or NULL. It uses the lines that `sojourn symbols` stored, else the debug
 * data of the module. The module must be on this machine and have the recorded build-id. Servers
 * must not register the function, because it opens files that the database names. Fails with
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_source_lines_register(sqlite3 *database, sj_error *error);

/* True if source_line returns a line for at least one of the ten functions of the session with the
 * most total time. Call sj_source_lines_register first. */
bool sj_source_lines_exist(sqlite3 *database, int64_t session_id);

#endif
