/* Assigns policies to devices by rules, which the collector stores. It sends each device the rules
 * that apply to the device, again and again until the device reports that it has them. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_POLICIES_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_POLICIES_H

#include "collector-server/fleet/fleet_devices.h"

typedef struct sj_fleet_rule {
    const sj_fleet_set *set; /* devices that the rule applies to */
    const char *app;         /* program that the rule applies to; "": every program */
    const json_t *policy;    /* a document, or the name of a shipped one; NULL: ends the rule */
    const char *set_by;
    uint32_t timeout_ms; /* timeout of the commands that bring the rule to the devices */
} sj_fleet_rule;

/* Sets or ends a rule, and queues a command for each device whose rules change. `*commands` is a
 * list of the command ids; the caller releases it. Returns SJ_ENOTFOUND if there was no such rule
 * to end. Returns SJ_ELIMIT if a device would have more rules than a command can carry. */
SJ_MUST_CHECK sj_status sj_fleet_rule_put(sj_fleet *fleet, const sj_fleet_rule *rule,
                                          json_t **commands, sj_error *error);

/* Queues a command with the device's rules if the device does not have them and no such command is
 * under way. `has` is the digest of the rules that the device reports now; NULL: as it last
 * reported. `*command_id` is 0 if no command is needed. Returns SJ_ELIMIT if the rules are too long
 * for a command, SJ_ENOMEM, or an error of the database (sj_database_status). */
SJ_MUST_CHECK sj_status sj_fleet_policies_sync(sj_fleet *fleet, int64_t device_id, const char *has,
                                               const char *requested_by, uint32_t timeout_ms,
                                               int64_t *command_id, sj_error *error);

#endif
