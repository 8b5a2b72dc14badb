/* Call estimates: of functions whose calls were counted without a clock (SJ_CALL_UNTIMED), how many
 * were, how many others say how long they last, and the standard error that their sum of durations
 * has for it. From blocks to columns of function_stats. One thread at a time. */
#ifndef SJ_COLLECTOR_SERVER_STORE_CALL_ESTIMATES_H
#define SJ_COLLECTOR_SERVER_STORE_CALL_ESTIMATES_H

#include "proto/block/block.h"

/* Of a function, in the blocks that were added. */
typedef struct sj_call_estimate {
    uint64_t untimed;     /* calls without a clock */
    uint64_t timed;       /* calls beside them, in the same blocks, that have both times */
    double untimed_ticks; /* sums of durations */
    double timed_ticks;
    double timed_squares;
} sj_call_estimate;

/* What the row of a function says of the calls of earlier blocks. */
typedef struct sj_stored_estimate {
    int64_t function_id;
    uint64_t untimed, timed;
    double error_ns;
} sj_stored_estimate;

typedef struct sj_call_estimates sj_call_estimates;

void sj_call_estimates_free(sj_call_estimates *estimates);

/* sj_call_estimates_bytes is the memory that they take. NULL: 0. */
size_t sj_call_estimates_bytes(const sj_call_estimates *estimates);

/* sj_call_estimates_add adds the calls that end in a decoded block. `*estimates` is made when the
 * block is the first that has such calls; NULL: there were none. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_estimates_add(sj_call_estimates **estimates, const sj_block *block);

/* sj_call_estimates_restore notes a row, before blocks are added and in the order of rising ids.
 * SJ_ENOMEM. sj_call_estimates_stored returns it, or zeroes. */
SJ_MUST_CHECK sj_status sj_call_estimates_restore(sj_call_estimates **estimates,
                                                  const sj_stored_estimate *stored);
sj_stored_estimate sj_call_estimates_stored(const sj_call_estimates *estimates,
                                            int64_t function_id);

/* sj_call_estimates_next returns the place behind `place` of a function with something to write,
 * its number in `*function`, or NULL. From 0 on. sj_call_estimates_clean: it has been written. */
const sj_call_estimate *sj_call_estimates_next(const sj_call_estimates *estimates, size_t *place,
                                               uint32_t *function);
void sj_call_estimates_clean(sj_call_estimates *estimates);

/* sj_call_estimate_error is the standard error of the sum of the durations of the untimed calls, in
 * ticks: as large as the sum where fewer than two calls tell. */
double sj_call_estimate_error(const sj_call_estimate *estimate);

#endif
