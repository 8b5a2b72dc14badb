/* Design notes. Run times have long tails and single outliers, so all tests work on ranks. The
 * exact test counts all ways to choose the values of B from the pool, by dynamic programming over
 * doubled midranks. It compares how many give a rank sum as far from the middle as the measured
 * one. That is exact with ties, which equal counts and coarse clocks cause. */
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

/* Computes doubled midranks of the sorted pool; returns the sum of t^3 - t over its ties. */
static double rank_pool(const pooled_value *pool, size_t count, uint32_t *ranks)
{
    double ties = 0;
    for (size_t first = 0; first < count;) {
        size_t end = first + 1;
        while (end < count && !(pool[end].value > pool[first].value)) {
            ++end;
        }
        for (size_t i = first; i < end; ++i) {
            ranks[i] = (uint32_t)(first + end + 1); /* ranks first+1 .. end, doubled mean */
        }
        const double tied = (double)(end - first);
        ties += tied * tied * tied - tied;
        first = end;
    }
    return ties;
}

/* Returns the number of ways in which `b_count` of the ranks have each sum from 0 to `sums` - 1.
 * The caller frees it; NULL: out of memory. */
static double *count_ways(const uint32_t *ranks, size_t count, size_t b_count, size_t sums)
{
    double *ways = calloc((b_count + 1) * sums, sizeof(*ways)); /* also for each smaller count */
    if (ways == NULL) {
        return NULL;
    }
    ways[0] = 1;
    for (size_t i = 0; i < count; ++i) {
        for (size_t k = i + 1 < b_count ? i + 1 : b_count; k > 0; --k) {
            const double *fewer = ways + (k - 1) * sums;
            double *row = ways + k * sums;
            for (size_t sum = sums - 1; sum >= ranks[i]; --sum) {
                row[sum] += fewer[sum - ranks[i]];
            }
        }
    }
    memmove(ways, ways + b_count * sums, sums * sizeof(*ways));
    return ways;
}

static sj_status exact_p(const uint32_t *ranks, size_t count, size_t b_count, uint32_t b_sum,
                         double *p_value)
{
    const size_t sums = count * (count + 1) + 1;
    double *ways = count_ways(ranks, count, b_count, sums);
    if (ways == NULL) {
        return SJ_ENOMEM;
    }
    const double middle = (double)b_count * (double)(count + 1); /* doubled */
    const double seen = fabs((double)b_sum - middle);
    double all = 0;
    double extreme = 0;
    for (size_t sum = 0; sum < sums; ++sum) {
        all += ways[sum];
        extreme += fabs((double)sum - middle) >= seen - 0.5 ? ways[sum] : 0;
    }
    free(ways);
    *p_value = all > 0 ? extreme / all : 1;
    return SJ_OK;
}

static double normal_p(size_t count, size_t b_count, uint64_t b_sum, double ties)
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
        status = exact_p(ranks, count, b_count, (uint32_t)b_sum, p_value);
    } else {
        *p_value = normal_p(count, b_count, b_sum, ties);
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

/* Finds how many of the least differences are outside the interval, plus one: as many as the exact
 * test allows without equal values. 0: not even the least may be its end. */
static sj_status exact_place(size_t a_count, size_t b_count, double level, size_t *place)
{
    const size_t count = a_count + b_count;
    uint32_t ranks[EXACT_VALUES];
    for (size_t i = 0; i < count; ++i) {
        ranks[i] = (uint32_t)i + 1;
    }
    const size_t sums = count * (count + 1) / 2 + 1;
    double *ways = count_ways(ranks, count, b_count, sums);
    if (ways == NULL) {
        return SJ_ENOMEM;
    }
    const size_t least = b_count * (b_count + 1) / 2;
    double all = 0;
    double below = 0;
    for (size_t sum = least; sum < sums; ++sum) {
        all += ways[sum];
    }
    *place = 0;
    for (size_t sum = least; sum < sums; ++sum) {
        below += ways[sum];
        if (2 * below > level * all * (1 + 1e-9)) {
            break;
        }
        ++*place;
    }
    free(ways);
    return SJ_OK;
}

/* Returns the number of standard deviations beyond which a share `level` of normal values lies. */
static double deviations_of(double level)
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

static size_t normal_place(size_t a_count, size_t b_count, double level)
{
    const double pairs = (double)a_count * (double)b_count;
    const double spread = deviations_of(level) * sqrt(pairs * (double)(a_count + b_count + 1) / 12);
    const double place = floor(pairs / 2 + 0.5 - spread);
    return place > 0 ? (size_t)place : 0;
}

sj_status sj_rank_shift(const double *a, size_t a_count, const double *b, size_t b_count,
                        double level, sj_shift *shift)
{
    const size_t pairs = a_count * b_count;
    size_t place = normal_place(a_count, b_count, level);
    if (a_count + b_count <= EXACT_VALUES) {
        SJ_TRY(exact_place(a_count, b_count, level, &place));
    }
    double *differences = malloc((pairs != 0 ? pairs : 1) * sizeof(*differences));
    if (differences == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < pairs; ++i) {
        differences[i] = b[i % b_count] - a[i / b_count];
    }
    shift->middle = sj_median(differences, pairs); /* sorts */
    shift->has_interval = place > 0 && place <= pairs;
    shift->low = shift->has_interval ? differences[place - 1] : 0;
    shift->high = shift->has_interval ? differences[pairs - place] : 0;
    free(differences);
    return SJ_OK;
}

size_t sj_rank_needed(size_t tests, double level)
{
    double splits = 2; /* ways to split 2n values into two equal halves */
    size_t n = 1;
    while (2.0 * (double)tests > level * splits * (1 + 1e-9)) {
        ++n;
        splits *= (4.0 * (double)n - 2) / (double)n;
    }
    return n;
}

typedef struct placed_p {
    double p;
    size_t place;
} placed_p;

static int compare_placed(const void *left, const void *right)
{
    const double a = ((const placed_p *)left)->p;
    const double b = ((const placed_p *)right)->p;
    return (a > b) - (a < b);
}

sj_status sj_adjust_holm(double *p_values, double *factors, size_t count)
{
    placed_p *sorted = malloc((count != 0 ? count : 1) * sizeof(*sorted));
    if (sorted == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < count; ++i) {
        sorted[i] = (placed_p){p_values[i], i};
    }
    qsort(sorted, count, sizeof(*sorted), compare_placed);
    double highest = 0;
    for (size_t i = 0; i < count; ++i) {
        highest = fmax(highest, sorted[i].p * (double)(count - i));
        p_values[sorted[i].place] = fmin(1.0, highest);
        factors[sorted[i].place] = highest / sorted[i].p;
    }
    free(sorted);
    return SJ_OK;
}
