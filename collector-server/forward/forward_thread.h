/* The thread of sojournd that forwards sessions while others are received. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_THREAD_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_THREAD_H

#include "collector-server/forward/forwarder.h"

typedef struct sj_forward_thread sj_forward_thread;

/* Starts the thread. It checks every few seconds which sessions are owed and sends them. If the
 * target does not answer, the thread retries after at most a minute, and logs the error once.
 * `database` must exist. */
SJ_MUST_CHECK sj_status sj_forward_thread_start(const char *database,
                                                const sj_forward_target_kind *kind,
                                                const sj_forward_options *options,
                                                sj_forward_thread **thread, sj_error *error);

/* Cancels running requests and waits for the thread. NULL is allowed. Blocks. */
void sj_forward_thread_stop(sj_forward_thread *thread);

#endif
