/* The thread of sojournd that forwards, beside the ingest. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_THREAD_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_THREAD_H

#include "collector-server/forward/forwarder.h"

typedef struct sj_forward_thread sj_forward_thread;

/* sj_forward_thread_start looks every few seconds what is owed; a target that is away is tried
 * again, after a minute at most, and reported once. `database` must exist. */
SJ_MUST_CHECK sj_status sj_forward_thread_start(const char *database,
                                                const sj_forward_target_kind *kind,
                                                const sj_forward_options *options,
                                                sj_forward_thread **thread, sj_error *error);

/* sj_forward_thread_stop breaks off what is under way. NULL is allowed. Blocking. */
void sj_forward_thread_stop(sj_forward_thread *thread);

#endif
