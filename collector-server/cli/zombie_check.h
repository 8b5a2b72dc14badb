/* `sojourn check --zombies`: finds uses of freed memory. */
#ifndef SJ_COLLECTOR_SERVER_CLI_ZOMBIE_CHECK_H
#define SJ_COLLECTOR_SERVER_CLI_ZOMBIE_CHECK_H

#include "collector-server/cli/command.h"

#include <sqlite3.h>

/* Prints the findings of a database, as JSON if `as_json`. Omits findings that are marked as
 * resolved, and those that the database at the path `baseline` also has (NULL: no baseline).
 * Returns SJ_EXIT_OK if it printed no findings, and SJ_EXIT_DIFFERS if it printed some. On an
 * error, prints a message and returns another exit code. It is an error if no process was watched
 * for uses of freed memory. */
int sj_zombie_check(const sj_command *command, sqlite3 *database, const char *baseline,
                    bool as_json);

#endif
