/* The thread of sojournd that sends sessions to a cluster, while the ingest stores new sessions. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_THREAD_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_THREAD_H

#include "collector-server/forward/forwarder.h"

typedef struct sj_forward_thread sj_forward_thread;

/* Starts the thread. The thread checks every ten seconds which sessions the cluster lacks, and
 * sends them. After a failure, it retries within a minute, and logs the error once. `database` must
 * exist. Ignores `options->stop`. Errors are those of sj_forwarder_open, and SJ_EIO if the
 * thread cannot start. */
SJ_MUST_CHECK sj_status sj_forward_thread_start(const char *database,
                                                const sj_forward_target_kind *kind,
                                                const sj_forward_options *options,
                                                sj_forward_thread **thread, sj_error *error);

/* Cancels running requests and waits for the thread. NULL is allowed. Blocks. */
void sj_forward_thread_stop(sj_forward_thread *thread);

#endif
