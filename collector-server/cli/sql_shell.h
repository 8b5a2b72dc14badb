/* The shell of `sojourn sql` without a query. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SQL_SHELL_H
#define SJ_COLLECTOR_SERVER_CLI_SQL_SHELL_H

#include "collector-server/cli/statement_runner.h"

/* sj_sql_shell reads statements, each ended by a semicolon, and dot commands from standard input
 * until its end or .quit. On a terminal: prompt, history (in $XDG_STATE_HOME/sojourn), completion.
 * `options` are the runner's, changed by .mode and .wide. Returns the exit code of the last
 * statement when it is no terminal, else SJ_EXIT_OK. */
int sj_sql_shell(sj_statement_runner *runner, sj_query_options *options);

#endif
