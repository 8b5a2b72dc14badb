/* Is B slower than A? What can be said from a few repeated measurements of each, without assuming
 * how they are distributed.
 *
 * Pure functions on arrays; any thread; nothing is kept. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_STATISTICS_H
#define SJ_COLLECTOR_SERVER_QUERY_STATISTICS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* sj_rank_test gives the two-sided p-value of the Mann-Whitney test: how likely a separation at
 * least this clear is when `a` and `b` come from one distribution. Exact (all splits counted, ties
 * as midranks) up to 24 values, normal approximation with correction for ties beyond. Never 0; 1
 * when a side is empty. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_rank_test(const double *a, size_t a_count, const double *b,
                                     size_t b_count, double *p_value);

/* A shift between two samples and the interval that holds it. */
typedef struct sj_shift {
    double middle; /* Hodges-Lehmann: median of all differences b - a */
    double low, high;
    bool has_interval; /* there are enough values for the level; else low and high are 0 */
} sj_shift;

/* sj_rank_shift estimates the shift from `a` to `b` (both not empty), and the interval that misses
 * it with a probability of at most `level`. The interval is that of sj_rank_test: where no two
 * values are equal, it excludes 0 exactly when the p-value is at most `level`. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_rank_shift(const double *a, size_t a_count, const double *b,
                                      size_t b_count, double level, sj_shift *shift);

/* sj_rank_needed returns how many values a side `tests` tests need: with fewer, not even sides that
 * are all apart give an adjusted p-value of `level`. */
size_t sj_rank_needed(size_t tests, double level);

/* sj_adjust_holm replaces `count` p-values by their Holm-adjusted ones: when none of the tested
 * differences is real, the chance that any falls to 0.05 or below is at most 5 %. `factors` (count)
 * receives what each p-value, which must not be 0, was multiplied by, before 1 cut it. SJ_ENOMEM.
 */
SJ_MUST_CHECK sj_status sj_adjust_holm(double *p_values, double *factors, size_t count);

/* sj_median returns the median of `values`, which it sorts; 0 when there are none. */
double sj_median(double *values, size_t count);

#endif
