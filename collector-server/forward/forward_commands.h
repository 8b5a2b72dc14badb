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

/* Sends all owed commands: a row for each new or changed command, and a mark of removal for each
 * deleted command. Writes the number of sent rows to `*given`. If a write fails, the next call
 * sends its rows again and replaces them in the cluster. Blocks on the network. Returns SJ_ENOMEM,
 * an error of the database, or an error of the target. */
SJ_MUST_CHECK sj_status sj_forward_commands_send(const sj_forward_way *way, uint64_t *given,
                                                 sj_error *error);

#endif
