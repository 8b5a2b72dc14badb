/* Which policy holds where. Rules are kept in the collector; each device gets those that concern
 * it, and gets them again until it says that it has them. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_POLICIES_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_POLICIES_H

#include "collector-server/fleet/fleet_devices.h"

typedef struct sj_fleet_rule {
    const sj_fleet_set *set; /* whom it concerns */
    const char *app;         /* "": every program */
    const json_t *policy;    /* document or name of a shipped one; NULL: the rule ends */
    const char *set_by;
    uint32_t timeout_ms; /* of the commands that bring it to the devices */
} sj_fleet_rule;

/* sj_fleet_rule_put sets or ends a rule, and queues a command for each device for which something
 * changed. `*commands` is a list of their ids, released by the caller. SJ_ENOTFOUND: there was no
 * such rule to end; SJ_ELIMIT: a device would have more rules than a command can carry. */
SJ_MUST_CHECK sj_status sj_fleet_rule_put(sj_fleet *fleet, const sj_fleet_rule *rule,
                                          json_t **commands, sj_error *error);

/* sj_fleet_policies_sync queues a command when the device does not have the rules that concern it
 * and no such command is under way. `has` is what the device says that it has; NULL: look up what
 * it said last. `*command_id` is 0 when there was nothing to do. */
SJ_MUST_CHECK sj_status sj_fleet_policies_sync(sj_fleet *fleet, int64_t device_id, const char *has,
                                               const char *requested_by, uint32_t timeout_ms,
                                               int64_t *command_id, sj_error *error);

#endif
