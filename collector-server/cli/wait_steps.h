/* The CPU time of a session's threads, as the kernel's scheduler counted it. Each step is a row of
 * the table thread_times: the CPU time of one thread in a short time. From the steps follow lower
 * bounds of the time that a thread worked and waited in any period. */
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
    int64_t working_before, waiting_before; /* ns; sums over the thread's earlier steps */
} sj_wait_step;

/* A list of steps, sorted by thread and time. A zeroed list is empty. */
typedef struct sj_wait_steps {
    sj_wait_step *steps;
    size_t count, capacity;
} sj_wait_steps;

/* Reads the steps of a session into `steps`, which must be zeroed. Fails with SJ_EIO, SJ_ENOMEM, or
 * SJ_ELIMIT (more than 4 Mi steps). The caller calls sj_wait_steps_deinit, also after an error. */
SJ_MUST_CHECK sj_status sj_wait_steps_read(sqlite3 *database, int64_t session_id,
                                           sj_wait_steps *steps, sj_error *error);
void sj_wait_steps_deinit(sj_wait_steps *steps);

/* Writes lower bounds of the time that a thread worked and waited from `from_ns` to `to_ns`. A
 * step may be only partly in this period. Then the bound assumes that as much work (or waiting) as
 * possible was in the other part of the step. Subtracts one tick of the kernel's timer from both
 * bounds, because the kernel may not have counted that tick yet. */
void sj_wait_steps_bound(const sj_wait_steps *steps, int64_t thread_id, int64_t from_ns,
                         int64_t to_ns, int64_t *working_ns, int64_t *waiting_ns);

#endif
