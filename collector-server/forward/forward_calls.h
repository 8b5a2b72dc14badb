/* Sends single calls of a time window to a cluster, in addition to the sums of their session. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_CALLS_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_CALLS_H

#include "collector-server/forward/forward_target.h"

typedef struct sj_forward_window {
    int64_t from_ns, to_ns; /* since the session's start; to_ns 0: until the session's end */
} sj_forward_window;

/* Sends the calls of a session that began in a window, in parts of some megabytes. Writes their
 * number to `*calls`. A call that the cluster already has is replaced, so a window may be sent
 * again, whole or in part. `database` must have Sojourn's tables (sj_query_register). Returns
 * SJ_ENOTFOUND if the session does not exist, SJ_EIO, SJ_ENOMEM, or an error of the target's
 * `check` and `write`. */
SJ_MUST_CHECK sj_status sj_forward_calls_send(sqlite3 *database, int64_t session_id,
                                              const sj_forward_window *window,
                                              const sj_forward_target_kind *kind,
                                              sj_forward_target *target, uint64_t *calls,
                                              sj_error *error);

#endif
