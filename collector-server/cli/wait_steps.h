/* What the scheduler counted of the threads of a session, and how it bounds a part of a thread's
 * time. */
#ifndef SJ_COLLECTOR_SERVER_CLI_WAIT_STEPS_H
#define SJ_COLLECTOR_SERVER_CLI_WAIT_STEPS_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sj_wait_step {
    int64_t thread_id;
    int64_t from_ns, to_ns;
    int64_t cpu_ns;                         /* of it; 0 to its length */
    int64_t working_before, waiting_before; /* sums over the thread's steps before it */
} sj_wait_step;

/* By thread and time; zeroed: none. */
typedef struct sj_wait_steps {
    sj_wait_step *steps;
    size_t count, capacity;
} sj_wait_steps;

/* sj_wait_steps_read reads the steps of a session. SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_wait_steps_read(sqlite3 *database, int64_t session_id,
                                           sj_wait_steps *steps, sj_error *error);
void sj_wait_steps_deinit(sj_wait_steps *steps);

/* sj_wait_steps_bound gives how long a thread at least worked and waited between two moments: a
 * step that lies across one of them gives what has no room in its other part. What the kernel had
 * not counted yet of a running thread is taken off both. */
void sj_wait_steps_bound(const sj_wait_steps *steps, int64_t thread_id, int64_t from_ns,
                         int64_t to_ns, int64_t *working_ns, int64_t *waiting_ns);

#endif
