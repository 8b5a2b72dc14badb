/* The command `record`: an app is prepared, started and recorded on its device, and then exported.
 *
 * It goes on in steps, each a command of its own to the device; while it does, the command's result
 * is what it has come to: {"state": "preparing", "prepared", "started", "recording" or "finished",
 * "at": {STATE: CLOCK_REALTIME in ns, ...}, "runtime", "needs", "session", ...}. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_RECORD_JOBS_H
#define SJ_COLLECTOR_SERVER_FLEET_RECORD_JOBS_H

#include "collector-server/fleet/fleet_commands.h"

#include <jansson.h>

/* sj_record_job_step takes what can be done now. SJ_OK: the session has come to its end and waits
 * for its export; `*progress`, released by the caller, names it. SJ_EAGAIN: later. Anything else: a
 * step has failed, as `error` says. One thread. */
SJ_MUST_CHECK sj_status sj_record_job_step(sj_fleet *fleet, const sj_fleet_command *command,
                                           json_t **progress, sj_error *error);

/* sj_record_job_reach notes in what a command has come to that it is in a state, now. */
void sj_record_job_reach(json_t *progress, const char *state);

#endif
