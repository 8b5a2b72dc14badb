/* Where functions are written, as far as this machine knows: the SQL function source_line. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SOURCE_LINES_H
#define SJ_COLLECTOR_SERVER_CLI_SOURCE_LINES_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* sj_source_lines_register adds source_line(function_id) to the connection: FILE:LINE of the
 * function's declaration, or NULL. It comes from what `sojourn symbols` has added, else from the
 * debug data of the module, or of its separate debug file, where that lies on this machine with
 * the module's build-id. It opens the files that the database names: only for people's own
 * commands. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_source_lines_register(sqlite3 *database, sj_error *error);

/* sj_source_lines_exist returns whether source_line gives anything for the functions of a session
 * that took the most. */
bool sj_source_lines_exist(sqlite3 *database, int64_t session_id);

#endif
