/* Estimates for functions some of whose calls were counted without reading the clock
 * (SJ_CALL_UNTIMED).
 *
 * An estimate counts the untimed calls, and the timed calls in the same blocks. The spread of the
 * timed calls gives the standard error of the sum of durations. The estimates are computed from
 * blocks, and stored in columns of function_stats. One thread at a time. */
#ifndef SJ_COLLECTOR_SERVER_STORE_CALL_ESTIMATES_H
#define SJ_COLLECTOR_SERVER_STORE_CALL_ESTIMATES_H

#include "proto/block/block.h"

/* Sums of one function over the blocks that were added. */
typedef struct sj_call_estimate {
    uint64_t untimed; /* calls without a clock reading */
    /* timed calls in the blocks that have untimed calls of the function, except calls with a gap or
     * a wait for the recorder in them */
    uint64_t timed;
    double untimed_ticks; /* sum of the durations of the untimed calls, in ticks */
    double timed_ticks;   /* sum of the durations of the timed calls, in ticks */
    double timed_squares; /* sum of the squares of the timed durations */
} sj_call_estimate;

/* The estimate in a function's row, from the calls of earlier blocks. */
typedef struct sj_stored_estimate {
    int64_t function_id;
    uint64_t untimed, timed;
    double error_ns;
} sj_stored_estimate;

typedef struct sj_call_estimates sj_call_estimates;

void sj_call_estimates_free(sj_call_estimates *estimates);

/* Returns the memory that `estimates` takes, in bytes. NULL takes 0. */
size_t sj_call_estimates_bytes(const sj_call_estimates *estimates);

/* Adds the calls that end in a decoded block. Does nothing if the block has no untimed calls.
 * Creates `*estimates` if it is NULL. Returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_estimates_add(sj_call_estimates **estimates, const sj_block *block);

/* sj_call_estimates_restore adds the estimate of a stored row. Call it before any block is added,
 * by rising function ids. It returns SJ_ENOMEM if out of memory. sj_call_estimates_stored returns
 * the stored estimate of a function, with zeroes if there is none. */
SJ_MUST_CHECK sj_status sj_call_estimates_restore(sj_call_estimates **estimates,
                                                  const sj_stored_estimate *stored);
sj_stored_estimate sj_call_estimates_stored(const sj_call_estimates *estimates,
                                            int64_t function_id);

/* sj_call_estimates_next iterates over the functions that have untimed calls and changed since
 * sj_call_estimates_clean. Set `*place` to 0 before the first call. Writes the function's
 * session-wide id to `*function`. Returns NULL after the last function. sj_call_estimates_clean
 * marks all functions as unchanged. */
const sj_call_estimate *sj_call_estimates_next(const sj_call_estimates *estimates, size_t *place,
                                               uint32_t *function);
void sj_call_estimates_clean(sj_call_estimates *estimates);

/* Returns the standard error of the summed durations of the untimed calls, in ticks. With fewer
 * than two timed calls, the error is as large as the sum. */
double sj_call_estimate_error(const sj_call_estimate *estimate);

#endif
