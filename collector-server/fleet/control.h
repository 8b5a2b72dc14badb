/* Giving commands: what the command line and the HTTP API do alike. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_CONTROL_H
#define SJ_COLLECTOR_SERVER_FLEET_CONTROL_H

#include "collector-server/fleet/fleet.h"

#include <jansson.h>

typedef struct sj_control_request {
    const char *devices; /* see sj_fleet_find_set */
    const char *kind;
    const json_t *arguments; /* NULL: none */
    const char *requested_by;
    int64_t timeout_ms; /* 0: as long as the command usually may take */
} sj_control_request;

/* sj_control_give checks a request and queues, or carries out, what it asks. `*given` is
 * [{"command": id, "device_id": id, "device": name}, ...], one for each command that was made,
 * released by the caller. SJ_EINVAL, SJ_EUNSUPPORTED, SJ_ENOTFOUND (also: no device is meant),
 * SJ_ELIMIT, SJ_EIO: the sentence says what to do. */
SJ_MUST_CHECK sj_status sj_control_give(sj_fleet *fleet, const sj_control_request *request,
                                        json_t **given, sj_error *error);

#endif
