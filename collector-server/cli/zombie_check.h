/* `sojourn check --zombies`: finds uses of freed memory. */
#ifndef SJ_COLLECTOR_SERVER_CLI_ZOMBIE_CHECK_H
#define SJ_COLLECTOR_SERVER_CLI_ZOMBIE_CHECK_H

#include "collector-server/cli/command.h"

#include <sqlite3.h>

/* Prints the findings of a database that are neither resolved nor in the database `baseline` (a
 * path; NULL: none). Returns SJ_EXIT_OK if there are none, else SJ_EXIT_DIFFERS. After a failure,
 * returns its exit code, with a message. It is a failure, too, if no process was watched. */
int sj_zombie_check(const sj_command *command, sqlite3 *database, const char *baseline,
                    bool as_json);

#endif
