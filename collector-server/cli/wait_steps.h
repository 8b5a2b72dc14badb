/* The CPU time of a session's threads in steps, as the scheduler counted it (thread_times). From
 * these steps follow bounds for any period of a thread. */
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
    int64_t cpu_ns;                         /* CPU time in the step; at most its length */
    int64_t working_before, waiting_before; /* sums over the thread's earlier steps */
} sj_wait_step;

/* Sorted by thread and time. Zeroed: empty. */
typedef struct sj_wait_steps {
    sj_wait_step *steps;
    size_t count, capacity;
} sj_wait_steps;

/* Reads the steps of a session into `steps`, which must be zeroed. Fails with SJ_EIO, SJ_ENOMEM, or
 * SJ_ELIMIT (more than 4 Mi steps). On an error, deinit `steps`, too. */
SJ_MUST_CHECK sj_status sj_wait_steps_read(sqlite3 *database, int64_t session_id,
                                           sj_wait_steps *steps, sj_error *error);
void sj_wait_steps_deinit(sj_wait_steps *steps);

/* Writes at least how long a thread worked and waited between two moments. A step that crosses one
 * of the moments contributes only the time that does not fit into its other part. Subtracts one
 * tick of the kernel's timer from both results, because the kernel may not have counted that tick
 * yet. */
void sj_wait_steps_bound(const sj_wait_steps *steps, int64_t thread_id, int64_t from_ns,
                         int64_t to_ns, int64_t *working_ns, int64_t *waiting_ns);

#endif
