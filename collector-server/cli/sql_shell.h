/* The interactive shell of `sojourn sql` without a query. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SQL_SHELL_H
#define SJ_COLLECTOR_SERVER_CLI_SQL_SHELL_H

#include "collector-server/cli/statement_runner.h"

/* Reads statements, each ended by a semicolon, and dot commands from standard input until its end
 * or .quit. On a terminal it has a prompt, history (in $XDG_STATE_HOME/sojourn) and completion.
 * `options` are those of the runner; .mode and .wide change them. Returns SJ_EXIT_OK on a terminal,
 * else the exit code of the last statement. */
int sj_sql_shell(sj_statement_runner *runner, sj_query_options *options);

#endif
