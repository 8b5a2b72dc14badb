/* The worker: one process a session. The daemon has NNG's threads and cannot fork a program itself;
 * a worker is `sojourn-device session` anew, records one launch or attach and outlives the daemon.
 * It reads what to do from standard input and answers one line on standard output, when the
 * recording goes on or why it does not: in:  {"command": [...] or "pid", "name", "directory",
 * "environment", "prepare", "policy", "policy_from", "libs", "modules", "functions", "exclude",
 * "max_bytes", "spool_bytes", "duration_ms", "stamp", "only_prepare", "prepared"} out: {"session":
 * TEXT, "policy": NAME, "policy_from": WHERE}, of "only_prepare" {"runtime": NAME, "needs": [...]}
 * (app_runtime.h), or {"error": TEXT}. What was "prepared" before skips the steps of that. */
#ifndef SJ_AGENT_DAEMON_WORKER_H
#define SJ_AGENT_DAEMON_WORKER_H

#include "proto/base/error.h"

#include <jansson.h>

/* sj_worker_start spawns a worker and waits for its answer, at most `timeout_ms`. `*session` is the
 * line's object, released by the caller. SJ_EINVAL: the worker says why it cannot; SJ_EIO;
 * SJ_ETIMEDOUT: it was given up and is ended. */
SJ_MUST_CHECK sj_status sj_worker_start(const json_t *order, int timeout_ms, json_t **session,
                                        sj_error *error);

/* sj_worker_main is the worker itself; returns the exit code. */
int sj_worker_main(void);

#endif
