/* `sojourn check --zombies`: finds uses of freed memory. */
#ifndef SJ_COLLECTOR_SERVER_CLI_ZOMBIE_CHECK_H
#define SJ_COLLECTOR_SERVER_CLI_ZOMBIE_CHECK_H

#include "collector-server/cli/command.h"

#include <sqlite3.h>

/* Prints the findings of a database that are neither resolved nor in the database at the path
 * `baseline` (NULL: none). Returns SJ_EXIT_OK if there are none, SJ_EXIT_DIFFERS if there are some,
 * and another exit code after a message. Fails also if no process was watched for such uses. */
int sj_zombie_check(const sj_command *command, sqlite3 *database, const char *baseline,
                    bool as_json);

#endif
