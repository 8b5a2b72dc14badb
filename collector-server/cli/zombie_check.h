/* `sojourn check --zombies`. */
#ifndef SJ_COLLECTOR_SERVER_CLI_ZOMBIE_CHECK_H
#define SJ_COLLECTOR_SERVER_CLI_ZOMBIE_CHECK_H

#include "collector-server/cli/command.h"

#include <sqlite3.h>

/* sj_zombie_check prints the findings of a database that are not resolved and not in the database
 * `baseline` (a path; NULL: none). Returns SJ_EXIT_OK when there are none, SJ_EXIT_DIFFERS, or the
 * code of a failure after its message: also when no process was watched. */
int sj_zombie_check(const sj_command *command, sqlite3 *database, const char *baseline,
                    bool as_json);

#endif
