/* Statistics for the question "is B slower than A?", from a few repeated measurements of each,
 * without assumptions about their distribution. Pure functions on arrays; thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_STATISTICS_H
#define SJ_COLLECTOR_SERVER_QUERY_STATISTICS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Computes the two-sided p-value of the Mann-Whitney test: the probability of a separation at least
 * this clear if `a` and `b` come from one distribution. Exact (all splits counted, ties as
 * midranks) up to 24 values. Beyond that, a normal approximation with correction for ties. Never 0;
 * 1 if a side is empty. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_rank_test(const double *a, size_t a_count, const double *b,
                                     size_t b_count, double *p_value);

/* A shift between two samples, and its interval. */
typedef struct sj_shift {
    double middle; /* Hodges-Lehmann: median of all differences b - a */
    double low, high;
    bool has_interval; /* there are enough values for the level; else low and high are 0 */
} sj_shift;

/* Estimates the shift from `a` to `b` (both not empty), and an interval that misses it with a
 * probability of at most `level`. The interval matches sj_rank_test: without equal values, it
 * excludes 0 exactly if the p-value is at most `level`. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_rank_shift(const double *a, size_t a_count, const double *b,
                                      size_t b_count, double level, sj_shift *shift);

/* Returns the number of values per side that `tests` tests need. With fewer, even completely
 * separate sides have an adjusted p-value above `level`. */
size_t sj_rank_needed(size_t tests, double level);

/* Replaces `count` p-values by their Holm-adjusted ones. If no tested difference is real, the
 * chance that any adjusted value is 0.05 or less is at most 5 %. `factors` (count) receives the
 * factor of each p-value, before the limit of 1. A p-value must not be 0. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_adjust_holm(double *p_values, double *factors, size_t count);

/* Returns the median of `values`, which it sorts; 0 if there are none. */
double sj_median(double *values, size_t count);

#endif
