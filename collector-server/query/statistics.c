/* Design notes. Run times have long tails and outliers, so all tests work on ranks. Equal counts
 * and coarse clocks cause ties, so tied values get their mean rank (midrank). Ranks are doubled, so
 * that they are integers.
 *
 * The exact test counts all ways to choose the values of B from the pool of all values. Its p-value
 * is the share of the ways whose rank sum is at least as far from the mean as the measured rank
 * sum. It is exact with ties, too. */
#include "collector-server/query/statistics.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_VALUES = 24 };

typedef struct pooled_value {
    double value;
    bool from_b;
} pooled_value;

static int compare_pooled(const void *left, const void *right)
{
    const double a = ((const pooled_value *)left)->value;
    const double b = ((const pooled_value *)right)->value;
    return (a > b) - (a < b);
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Writes the doubled midranks of the sorted pool to `ranks`. Returns the sum of t^3 - t over the
 * groups of t equal values. */
static double rank_pool(const pooled_value *pool, size_t count, uint32_t *ranks)
{
    double ties = 0;
    for (size_t first = 0; first < count;) {
        size_t end = first + 1;
        while (end < count && !(pool[end].value > pool[first].value)) {
            ++end;
        }
        for (size_t i = first; i < end; ++i) {
            ranks[i] = (uint32_t)(first + end + 1); /* twice the mean of first + 1 .. end */
        }
        const double tied = (double)(end - first);
        ties += tied * tied * tied - tied;
        first = end;
    }
    return ties;
}

/* Returns an array: element s is the number of ways to choose `b_count` of the ranks with the sum
 * s, for s < `sum_count`. The caller frees the array. Returns NULL if out of memory. */
static double *count_ways(const uint32_t *ranks, size_t count, size_t b_count, size_t sum_count)
{
    /* Row k of `ways` is the array for k chosen ranks. */
    double *ways = calloc((b_count + 1) * sum_count, sizeof(*ways));
    if (ways == NULL) {
        return NULL;
    }
    ways[0] = 1;
    for (size_t i = 0; i < count; ++i) {
        for (size_t k = i + 1 < b_count ? i + 1 : b_count; k > 0; --k) {
            const double *fewer = ways + (k - 1) * sum_count;
            double *row = ways + k * sum_count;
            for (size_t sum = sum_count - 1; sum >= ranks[i]; --sum) {
                row[sum] += fewer[sum - ranks[i]];
            }
        }
    }
    memmove(ways, ways + b_count * sum_count, sum_count * sizeof(*ways));
    return ways;
}

static sj_status compute_exact_p(const uint32_t *ranks, size_t count, size_t b_count,
                                 uint32_t b_sum, double *p_value)
{
    const size_t sum_count = count * (count + 1) + 1;
    double *ways = count_ways(ranks, count, b_count, sum_count);
    if (ways == NULL) {
        return SJ_ENOMEM;
    }
    const double middle = (double)b_count * (double)(count + 1); /* mean of the doubled rank sum */
    const double seen = fabs((double)b_sum - middle);
    double all = 0;
    double extreme = 0;
    for (size_t sum = 0; sum < sum_count; ++sum) {
        all += ways[sum];
        extreme += fabs((double)sum - middle) >= seen - 0.5 ? ways[sum] : 0;
    }
    free(ways);
    *p_value = all > 0 ? extreme / all : 1;
    return SJ_OK;
}

static double approximate_p(size_t count, size_t b_count, uint64_t b_sum, double ties)
{
    const double n = (double)count;
    const double pairs = (double)b_count * (n - (double)b_count);
    const double variance = pairs / 12.0 * (n + 1 - ties / (n * (n - 1)));
    const double away = fabs((double)b_sum / 2.0 - (double)b_count * (n + 1) / 2.0) - 0.5;
    if (variance <= 0 || away <= 0) {
        return 1;
    }
    return fmax(erfc(away / sqrt(variance) / sqrt(2.0)), DBL_MIN);
}

sj_status sj_rank_test(const double *a, size_t a_count, const double *b, size_t b_count,
                       double *p_value)
{
    const size_t count = a_count + b_count;
    *p_value = 1;
    if (a_count == 0 || b_count == 0) {
        return SJ_OK;
    }
    pooled_value *pool = malloc(count * sizeof(*pool));
    uint32_t *ranks = malloc(count * sizeof(*ranks));
    if (pool == NULL || ranks == NULL) {
        free(pool);
        free(ranks);
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < count; ++i) {
        pool[i] = i < a_count ? (pooled_value){a[i], false} : (pooled_value){b[i - a_count], true};
    }
    qsort(pool, count, sizeof(*pool), compare_pooled);
    const double ties = rank_pool(pool, count, ranks);
    uint64_t b_sum = 0;
    for (size_t i = 0; i < count; ++i) {
        b_sum += pool[i].from_b ? ranks[i] : 0;
    }
    sj_status status = SJ_OK;
    if (count <= EXACT_VALUES) {
        status = compute_exact_p(ranks, count, b_count, (uint32_t)b_sum, p_value);
    } else {
        *p_value = approximate_p(count, b_count, b_sum, ties);
    }
    free(pool);
    free(ranks);
    return status;
}

double sj_median(double *values, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof(*values), compare_doubles);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Writes the rank, from 1, of the interval's lower end among the sorted differences. The rank is
 * the highest that the exact test without ties allows for `level`. Writes 0 if there are too few
 * values for an interval. */
static sj_status find_exact_low_rank(size_t a_count, size_t b_count, double level, size_t *low_rank)
{
    const size_t count = a_count + b_count;
    uint32_t ranks[EXACT_VALUES];
    for (size_t i = 0; i < count; ++i) {
        ranks[i] = (uint32_t)i + 1;
    }
    const size_t sum_count = count * (count + 1) / 2 + 1;
    double *ways = count_ways(ranks, count, b_count, sum_count);
    if (ways == NULL) {
        return SJ_ENOMEM;
    }
    const size_t least = b_count * (b_count + 1) / 2;
    double all = 0;
    double below = 0;
    for (size_t sum = least; sum < sum_count; ++sum) {
        all += ways[sum];
    }
    *low_rank = 0;
    for (size_t sum = least; sum < sum_count; ++sum) {
        below += ways[sum];
        if (2 * below > level * all * (1 + 1e-9)) {
            break;
        }
        ++*low_rank;
    }
    free(ways);
    return SJ_OK;
}

/* Returns x such that a share `level` of normal values is more than x standard deviations from the
 * mean. */
static double normal_quantile(double level)
{
    double low = 0;
    double high = 40;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        if (erfc(middle / sqrt(2.0)) > level) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

static size_t approximate_low_rank(size_t a_count, size_t b_count, double level)
{
    const double pairs = (double)a_count * (double)b_count;
    const double spread =
        normal_quantile(level) * sqrt(pairs * (double)(a_count + b_count + 1) / 12);
    const double low_rank = floor(pairs / 2 + 0.5 - spread);
    return low_rank > 0 ? (size_t)low_rank : 0;
}

sj_status sj_rank_shift(const double *a, size_t a_count, const double *b, size_t b_count,
                        double level, sj_shift *shift)
{
    const size_t pairs = a_count * b_count;
    size_t low_rank = approximate_low_rank(a_count, b_count, level);
    if (a_count + b_count <= EXACT_VALUES) {
        SJ_TRY(find_exact_low_rank(a_count, b_count, level, &low_rank));
    }
    double *differences = malloc((pairs != 0 ? pairs : 1) * sizeof(*differences));
    if (differences == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < pairs; ++i) {
        differences[i] = b[i % b_count] - a[i / b_count];
    }
    shift->middle = sj_median(differences, pairs); /* sorts `differences` */
    shift->has_interval = low_rank > 0 && low_rank <= pairs;
    shift->low = shift->has_interval ? differences[low_rank - 1] : 0;
    shift->high = shift->has_interval ? differences[pairs - low_rank] : 0;
    free(differences);
    return SJ_OK;
}

size_t sj_rank_needed(size_t tests, double level)
{
    double splits = 2; /* ways to choose n of 2n values */
    size_t n = 1;
    while (2.0 * (double)tests > level * splits * (1 + 1e-9)) {
        ++n;
        splits *= (4.0 * (double)n - 2) / (double)n;
    }
    return n;
}

typedef struct indexed_p {
    double p;
    size_t index; /* in the unsorted p-values */
} indexed_p;

static int compare_p_values(const void *left, const void *right)
{
    const double a = ((const indexed_p *)left)->p;
    const double b = ((const indexed_p *)right)->p;
    return (a > b) - (a < b);
}

sj_status sj_adjust_holm(double *p_values, double *factors, size_t count)
{
    indexed_p *sorted = malloc((count != 0 ? count : 1) * sizeof(*sorted));
    if (sorted == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < count; ++i) {
        sorted[i] = (indexed_p){p_values[i], i};
    }
    qsort(sorted, count, sizeof(*sorted), compare_p_values);
    double highest = 0;
    for (size_t i = 0; i < count; ++i) {
        highest = fmax(highest, sorted[i].p * (double)(count - i));
        p_values[sorted[i].index] = fmin(1.0, highest);
        factors[sorted[i].index] = highest / sorted[i].p;
    }
    free(sorted);
    return SJ_OK;
}
