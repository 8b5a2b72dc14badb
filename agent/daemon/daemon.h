/* The daemon's loops: one per collector asks for commands, and one ships the sessions of the
 * spool. */
#ifndef SJ_AGENT_DAEMON_DAEMON_H
#define SJ_AGENT_DAEMON_DAEMON_H

#include "proto/base/error.h"

#include <stdint.h>

typedef struct sj_daemon_options {
    uint64_t spool_bytes; /* Limit of disk space for all sessions together. 0: 4 GiB. */
} sj_daemon_options;

/* Runs until SIGTERM or SIGINT. Recordings continue without the daemon. Returns SJ_ENOTFOUND if the
 * device is not enrolled, and SJ_EEXIST if another daemon uses the state directory. Call it before
 * any thread is started. */
SJ_MUST_CHECK sj_status sj_daemon_run(const sj_daemon_options *options, sj_error *error);

#endif
