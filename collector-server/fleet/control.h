/* Gives commands to devices. The command line and the HTTP API use it. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_CONTROL_H
#define SJ_COLLECTOR_SERVER_FLEET_CONTROL_H

#include "collector-server/fleet/fleet.h"

#include <jansson.h>

typedef struct sj_control_request {
    const char *devices; /* a set of devices, in the form of sj_fleet_find_set */
    const char *kind;
    const json_t *arguments; /* NULL: none */
    const char *requested_by;
    int64_t timeout_ms; /* 0: the default of the command */
} sj_control_request;

/* Checks a request and queues one command for each device. `tags` and `quota` are carried out at
 * once and stored as finished commands. `policy` queues commands only for devices whose rules
 * change. `*given` is [{"command": id, "device_id": id, "device": name}, ...], one object for each
 * command; the caller releases it. Returns SJ_EINVAL, SJ_EUNSUPPORTED, SJ_ENOTFOUND (also if no
 * device matches), SJ_ELIMIT or SJ_EIO, with a message that says what to do. */
SJ_MUST_CHECK sj_status sj_control_give(sj_fleet *fleet, const sj_control_request *request,
                                        json_t **given, sj_error *error);

#endif
