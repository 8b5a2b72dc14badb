/* The worker: one process per session. The daemon cannot fork a program itself, because NNG runs
 * threads in it. So it starts `sojourn-device session`, which records one launch or attach and
 * outlives the daemon. The worker reads its task from standard input. It writes one line to
 * standard output when the recording runs, or when it cannot run.
 *
 *   in:  {"command": [...] or "pid", "name", "directory", "environment", "prepare", "policy",
 *         "policy_from", "libs", "modules", "functions", "exclude", "max_bytes", "spool_bytes",
 *         "duration_ms", "stamp", "only_prepare", "prepared"}
 *   out: {"session": TEXT, "policy": NAME, "policy_from": WHERE}
 *        or, with "only_prepare", {"runtime": NAME, "needs": [...]} (app_runtime.h)
 *        or {"error": TEXT}
 *
 * "prepared" skips the preparation steps, because they were run before. */
#ifndef SJ_AGENT_DAEMON_WORKER_H
#define SJ_AGENT_DAEMON_WORKER_H

#include "proto/base/error.h"

#include <jansson.h>

/* Starts a worker and waits for its line, at most `timeout_ms`. `*session` is the object in that
 * line, which the caller releases. Returns SJ_EINVAL with the worker's reason if it cannot record.
 * Returns SJ_EIO, or SJ_ETIMEDOUT after it has ended the worker. */
SJ_MUST_CHECK sj_status sj_worker_start(const json_t *task, int timeout_ms, json_t **session,
                                        sj_error *error);

/* Runs the worker. Returns the exit code. */
int sj_worker_main(void);

#endif
