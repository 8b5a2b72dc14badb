/* Statistics for the question "is B slower than A?", from a few repeated measurements of each,
 * without assumptions about their distribution. Pure functions on arrays; thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_STATISTICS_H
#define SJ_COLLECTOR_SERVER_QUERY_STATISTICS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes the two-sided p-value of the Mann-Whitney test. It is the probability of a rank sum at
 * least this extreme if `a` and `b` come from the same distribution. The p-value is exact for up to
 * 24 values in `a` and `b` together. For more values, it is a normal approximation with correction
 * for ties. The p-value is never 0; it is 1 if `a` or `b` is empty. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_rank_test(const double *a, size_t a_count, const double *b,
                                     size_t b_count, double *p_value);

/* A shift between two samples, and its confidence interval. */
typedef struct sj_shift {
    double middle;     /* Hodges-Lehmann estimate: median of all differences b - a */
    double low, high;  /* ends of the interval; 0 without an interval */
    bool has_interval; /* there are enough values for the level */
} sj_shift;

/* Writes an estimate of the shift from `a` to `b`, which must not be empty, and its confidence
 * interval. The interval misses the true shift with a probability of at most `level`. Without ties
 * and for up to 24 values, it excludes 0 exactly if the p-value of sj_rank_test is at most `level`.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_rank_shift(const double *a, size_t a_count, const double *b,
                                      size_t b_count, double level, sj_shift *shift);

/* Returns how many values each of two samples needs at least if `tests` tests are adjusted together
 * (sj_adjust_holm). With fewer values, the smallest possible adjusted p-value is above `level`. */
size_t sj_rank_needed(size_t tests, double level);

/* Replaces each of `count` p-values by its Holm-adjusted p-value. If no tested difference is real,
 * the chance that any adjusted p-value is at most 0.05 is at most 5 %. Writes to each of the
 * `count` elements of `factors` the adjusted p-value divided by the original one. In this quotient,
 * the adjusted p-value may exceed 1. No p-value may be 0. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_adjust_holm(double *p_values, double *factors, size_t count);

/* Sorts `values` and returns their median; 0 if `count` is 0. */
double sj_median(double *values, size_t count);

#endif
