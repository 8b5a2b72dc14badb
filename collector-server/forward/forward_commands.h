/* The audit of commands: each with its lab and number, as it is now, once. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_COMMANDS_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_COMMANDS_H

#include "collector-server/forward/forward_target.h"

/* Where it goes: `name` is the target's in forwarded_commands. */
typedef struct sj_forward_way {
    sqlite3 *reader, *writer;
    const sj_forward_target_kind *kind;
    sj_forward_target *target;
    const char *name;
} sj_forward_way;

/* sj_forward_commands_send gives all that is owed: commands that are new, or not as they were, and
 * word of those that are gone. `*given` counts. What a failed write left there is replaced by the
 * next. Blocking. */
SJ_MUST_CHECK sj_status sj_forward_commands_send(const sj_forward_way *way, uint64_t *given,
                                                 sj_error *error);

#endif
