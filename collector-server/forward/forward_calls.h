/* Single calls of a window to a cluster, beside the sums of their session. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_CALLS_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_CALLS_H

#include "collector-server/forward/forward_target.h"

typedef struct sj_forward_window {
    int64_t from_ns, to_ns; /* since the session's start; to_ns 0: its end */
} sj_forward_window;

/* sj_forward_calls_send gives the calls of a session that began in a window, in parts of some
 * megabytes; `*calls` counts them. A call that is there already is replaced, so that a window may
 * be given again, whole or in part. `database` has Sojourn's tables (sj_query_register). Errors of
 * the target's check and write; SJ_ENOTFOUND: there is no such session, SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_forward_calls_send(sqlite3 *database, int64_t session_id,
                                              const sj_forward_window *window,
                                              const sj_forward_target_kind *kind,
                                              sj_forward_target *target, uint64_t *calls,
                                              sj_error *error);

#endif
