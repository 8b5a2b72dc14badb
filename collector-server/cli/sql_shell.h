/* The interactive shell of `sojourn sql` without a query. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SQL_SHELL_H
#define SJ_COLLECTOR_SERVER_CLI_SQL_SHELL_H

#include "collector-server/cli/statement_runner.h"

/* Runs statements, each ended by a semicolon, and dot commands. Reads them from standard input
 * until its end or .quit. On a terminal, has a prompt, completion and a history (in
 * $XDG_STATE_HOME/sojourn). Without a terminal, the first error ends the shell. `options` are the
 * options of the runner; .mode, .wide and .session change them. On return, options->session is
 * NULL. Returns SJ_EXIT_OK on a terminal, else the exit code of the last statement. */
int sj_sql_shell(sj_statement_runner *runner, sj_query_options *options);

#endif
