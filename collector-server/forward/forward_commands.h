/* Sends the audit of commands: one row for each command, identified by its lab and number, in its
 * current state. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_COMMANDS_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_COMMANDS_H

#include "collector-server/forward/forward_target.h"

/* The connections for sending. `name` is the target's name in forwarded_commands. */
typedef struct sj_forward_way {
    sqlite3 *reader, *writer;
    const sj_forward_target_kind *kind;
    sj_forward_target *target;
    const char *name;
    size_t most_months; /* maximum number of months in one insert; see forward_months.h */
} sj_forward_way;

/* Sends all owed commands: those that are new or have changed, and a removal for each that was
 * deleted. `*given` counts them. The next call replaces rows of a failed write. Blocks on the
 * network. Returns SJ_ENOMEM, an error of the database, or an error of the target. */
SJ_MUST_CHECK sj_status sj_forward_commands_send(const sj_forward_way *way, uint64_t *given,
                                                 sj_error *error);

#endif
