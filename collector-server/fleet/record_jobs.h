/* The command `record`: a device prepares, starts and records an app, and then the collector
 * exports the session.
 *
 * The job consists of steps, each a separate command to the device. Until the last step has
 * ended, the result of the command `record` is its progress: {"state": "preparing", "prepared",
 * "started", "recording" or "finished", "at": {STATE: CLOCK_REALTIME in ns, ...}, "runtime",
 * "needs", "session", ...}. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_RECORD_JOBS_H
#define SJ_COLLECTOR_SERVER_FLEET_RECORD_JOBS_H

#include "collector-server/fleet/fleet_commands.h"

#include <jansson.h>

/* Carries out the next step, if possible. Returns SJ_OK if the session is complete and can be
 * exported; `*progress` names it, and the caller releases it. Returns SJ_EAGAIN if the caller
 * must call again later. Returns any other status if a step has failed. Not thread-safe. */
SJ_MUST_CHECK sj_status sj_record_job_step(sj_fleet *fleet, const sj_fleet_command *command,
                                           json_t **progress, sj_error *error);

/* Sets the state in `progress`, with the current time. */
void sj_record_job_reach(json_t *progress, const char *state);

#endif
