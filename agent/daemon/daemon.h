/* The daemon's two loops: asking the collector for commands, and shipping what lies in the spool.
 */
#ifndef SJ_AGENT_DAEMON_DAEMON_H
#define SJ_AGENT_DAEMON_DAEMON_H

#include "proto/base/error.h"

#include <stdint.h>

typedef struct sj_daemon_options {
    uint64_t spool_bytes; /* of all sessions together; 0: 4 GiB */
} sj_daemon_options;

/* sj_daemon_run works until SIGTERM or SIGINT; recordings go on without it. SJ_ENOTFOUND: not
 * enrolled; SJ_EEXIST: another daemon of this state directory runs. To be called before any thread
 * is started. */
SJ_MUST_CHECK sj_status sj_daemon_run(const sj_daemon_options *options, sj_error *error);

#endif
