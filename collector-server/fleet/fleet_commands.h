/* The table `commands`: what the collector asked of whom, and what came of it. One thread at a time
 * for each connection. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_COMMANDS_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_COMMANDS_H

#include "collector-server/fleet/fleet.h"

enum { SJ_FLEET_KIND_BYTES = 32, SJ_FLEET_ARGUMENTS_BYTES = 48 * 1024 };

typedef struct sj_fleet_order {
    int64_t device_id;
    const char *kind;
    const char *arguments; /* JSON object */
    const char *requested_by;
    uint32_t timeout_ms;
    bool is_for_collector; /* the collector itself carries it out: it begins as "preparing" */
} sj_fleet_order;

/* sj_fleet_order_add queues a command. SJ_ELIMIT: it is too long. */
SJ_MUST_CHECK sj_status sj_fleet_order_add(sj_fleet *fleet, const sj_fleet_order *order,
                                           int64_t *command_id, sj_error *error);

typedef struct sj_fleet_command {
    int64_t command_id;
    int64_t device_id;
    uint32_t timeout_ms;
    char kind[SJ_FLEET_KIND_BYTES];
    char arguments[SJ_FLEET_ARGUMENTS_BYTES];
} sj_fleet_command;

/* sj_fleet_note_poll notes what a device says of itself, and decides what it took up and lost: a
 * command sent before that is not `last_command`'s successor will not be answered any more. */
SJ_MUST_CHECK sj_status sj_fleet_note_poll(sj_fleet *fleet, int64_t device_id,
                                           uint64_t last_command, const char *status,
                                           sj_error *error);

/* sj_fleet_next gives the next command for a device and marks it as sent; one that was sent and
 * never taken up is given again. SJ_ENOTFOUND: none, or its token was revoked. */
SJ_MUST_CHECK sj_status sj_fleet_next(sj_fleet *fleet, int64_t device_id, uint64_t last_command,
                                      sj_fleet_command *command, sj_error *error);

/* sj_fleet_next_for_collector gives the next command after `after` that the collector carries out
 * itself. */
SJ_MUST_CHECK sj_status sj_fleet_next_for_collector(sj_fleet *fleet, int64_t after,
                                                    sj_fleet_command *command, sj_error *error);

/* sj_fleet_finish stores a result; a second one for the same command changes nothing. */
SJ_MUST_CHECK sj_status sj_fleet_finish(sj_fleet *fleet, int64_t device_id, uint64_t command_id,
                                        bool failed, const char *result, sj_error *error);

/* sj_fleet_note_file notes that a command has made a file of so many bytes. */
SJ_MUST_CHECK sj_status sj_fleet_note_file(sj_fleet *fleet, int64_t command_id, int64_t bytes,
                                           sj_error *error);

/* sj_fleet_may_fetch returns whether the device was sent a command that carries this file.
 * SJ_EPERM.
 */
SJ_MUST_CHECK sj_status sj_fleet_may_fetch(sj_fleet *fleet, int64_t device_id, uint64_t file,
                                           sj_error *error);

/* sj_fleet_expire ends commands whose time is over. */
SJ_MUST_CHECK sj_status sj_fleet_expire(sj_fleet *fleet, sj_error *error);

#endif
