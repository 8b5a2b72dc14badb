/* Design notes.
 *
 * Only rows with a large enough share of the time are tested. Tests use logarithms of self time, so
 * that a shift is a ratio. Each row is tested on the sum, and on the time without disturbances
 * (typical.h). There are two families of tests: row 0, and all other rows. P-values are adjusted
 * for the number of tests in their family (Holm) and for the other family. Confidence intervals are
 * widened by the same adjustment. The verdicts slower and faster need an adjusted p of at most
 * 0.05, an effect that is large enough, and medians that differ in the same direction. */
#include "collector-server/query/compare_internal.h"

#include <math.h>
#include <stdlib.h>

static const double significant = 0.05;

/* The two families share the chance of a false alarm. With these shares, six sessions per side can
 * decide row 0, and eight can decide functions. */
static const double row_0_share = 0.3;
static const double functions_share = 0.7;

/* With at least so many sessions per side, a call count that never varies counts as exact. */
enum { LEAST_CONSTANT = 4 };

/* Returns the number of tests per row. Time is tested twice (sj_compare_by), other measures
 * once. */
static size_t tests_per_row(const sj_compare *compare)
{
    return compare->options.of == SJ_COMPARE_TIME ? 2 : 1;
}

size_t sj_compare_copy_values(const sj_compare *compare, size_t row, int side, int measure,
                              double *output)
{
    const size_t first = side == 0 ? 0 : compare->sets[0].count;
    const size_t count = compare->sets[side].count;
    for (size_t i = 0; i < count; ++i) {
        output[i] = *sj_compare_value(compare, row, first + i, measure);
    }
    return count;
}

static bool is_minor(const sj_compare *compare, size_t number)
{
    const sj_compare_row *row = &compare->rows[number];
    const sj_compare_row *whole = &compare->rows[0];
    if (compare->options.of != SJ_COMPARE_TIME) {
        return row->costs[0] <= compare->options.least_share * whole->costs[0] &&
               row->costs[1] <= compare->options.least_share * whole->costs[1];
    }
    return row->self_ns[0] < compare->options.least_share * whole->self_ns[0] &&
           row->self_ns[1] < compare->options.least_share * whole->self_ns[1];
}

static int tested_measure(const sj_compare *compare, sj_compare_by by)
{
    return compare->options.of != SJ_COMPARE_TIME ? SJ_MEASURE_COST
           : by == SJ_COMPARE_BY_SUM              ? SJ_MEASURE_SELF
                                                  : SJ_MEASURE_TYPICAL;
}

/* Returns the medians of both sides for the measure that a test compares. */
static const double *tested_medians(const sj_compare *compare, const sj_compare_row *row,
                                    sj_compare_by by)
{
    return compare->options.of != SJ_COMPARE_TIME ? row->costs
           : by == SJ_COMPARE_BY_SUM              ? row->self_ns
                                                  : row->typical_ns;
}

/* Writes the logarithms of the values that a test compares to compare->scratch: A's, then B's. */
static void copy_logarithms(sj_compare *compare, size_t number, sj_compare_by by)
{
    double *values = compare->scratch;
    const int measure = tested_measure(compare, by);
    const size_t a_count = sj_compare_copy_values(compare, number, 0, measure, values);
    (void)sj_compare_copy_values(compare, number, 1, measure, values + a_count);
    for (size_t i = 0; i < compare->samples; ++i) {
        values[i] = log(fmax(values[i], 1.0));
    }
}

static sj_status test_row(sj_compare *compare, size_t number, sj_compare_by by)
{
    const size_t a_count = compare->sets[0].count;
    copy_logarithms(compare, number, by);
    return sj_rank_test(compare->scratch, a_count, compare->scratch + a_count,
                        compare->sets[1].count, &compare->rows[number].tests[by].p_value);
}

/* Writes the ratio and its confidence interval. The level of the interval is adjusted by `factor`,
 * as the p-value is, so that both agree. */
static sj_status measure_shift(sj_compare *compare, size_t number, sj_compare_by by, double factor)
{
    sj_compare_test *test = &compare->rows[number].tests[by];
    const size_t a_count = compare->sets[0].count;
    sj_shift shift;
    copy_logarithms(compare, number, by);
    SJ_TRY(sj_rank_shift(compare->scratch, a_count, compare->scratch + a_count,
                         compare->sets[1].count, significant / factor, &shift));
    test->ratio = exp(shift.middle);
    test->ratio_low = shift.has_interval ? exp(shift.low) : 0;
    test->ratio_high = shift.has_interval ? exp(shift.high) : 0;
    return SJ_OK;
}

static sj_compare_verdict judge_test(const sj_compare *compare, const sj_compare_row *row,
                                     sj_compare_by by)
{
    const sj_compare_test *test = &row->tests[by];
    const double *medians = tested_medians(compare, row, by);
    const double effect = compare->options.least_effect;
    const bool is_sure = test->p_adjusted <= significant && test->ratio_low > 0;
    if (is_sure && test->ratio_low > 1 && test->ratio >= 1 + effect && medians[1] > medians[0]) {
        return SJ_COMPARE_SLOWER;
    }
    if (is_sure && test->ratio_high < 1 && test->ratio <= 1 / (1 + effect) &&
        medians[1] < medians[0]) {
        return SJ_COMPARE_FASTER;
    }
    const bool is_close = test->ratio_low > 1 / (1 + effect) && test->ratio_high < 1 + effect;
    return is_close ? SJ_COMPARE_SAME : SJ_COMPARE_INCONCLUSIVE;
}

/* True if the other test supports the verdict of the test `by`. A change of the sum may come from
 * other work of the machine, so the typical time must show the change, too. A change of the typical
 * time may be hidden by noise in the sum, so the sum must only not exclude the change. */
static bool is_supported(const sj_compare *compare, const sj_compare_row *row, sj_compare_by by,
                         sj_compare_verdict verdict)
{
    const sj_compare_test *other =
        &row->tests[by == SJ_COMPARE_BY_SUM ? SJ_COMPARE_BY_TYPICAL : SJ_COMPARE_BY_SUM];
    const bool slower = verdict == SJ_COMPARE_SLOWER;
    const double ratio = slower ? other->ratio : 1 / other->ratio;
    if (by == SJ_COMPARE_BY_SUM) {
        return ratio >= 1 + compare->options.least_effect;
    }
    const double farthest = slower ? other->ratio_high : 1 / other->ratio_low;
    return other->ratio_low > 0 ? farthest >= 1 : ratio > 1;
}

/* Decides a row by its tests. The test by typical time decides if it finds a change, because it has
 * less noise. Else the sum decides if it finds a change. Else the test with the narrower interval
 * decides. A change that the other test does not support becomes inconclusive. */
static void judge(const sj_compare *compare, sj_compare_row *row)
{
    sj_compare_verdict verdicts[2];
    if (tests_per_row(compare) == 1) {
        row->decided_by = SJ_COMPARE_BY_SUM;
        row->verdict = judge_test(compare, row, SJ_COMPARE_BY_SUM);
        return;
    }
    for (int by = 0; by < 2; ++by) {
        verdicts[by] = judge_test(compare, row, (sj_compare_by)by);
    }
    const sj_compare_test *sum = &row->tests[SJ_COMPARE_BY_SUM];
    const sj_compare_test *typical = &row->tests[SJ_COMPARE_BY_TYPICAL];
    const bool sum_narrower =
        sum->ratio_low > 0 && log(sum->ratio_high) - log(sum->ratio_low) <
                                  log(typical->ratio_high) - log(typical->ratio_low);
    row->decided_by = sum_narrower ? SJ_COMPARE_BY_SUM : SJ_COMPARE_BY_TYPICAL;
    for (int by = 0; by < 2; ++by) {
        if (verdicts[by] == SJ_COMPARE_SLOWER || verdicts[by] == SJ_COMPARE_FASTER) {
            row->decided_by = (sj_compare_by)by;
        }
    }
    row->verdict = verdicts[row->decided_by];
    if ((row->verdict == SJ_COMPARE_SLOWER || row->verdict == SJ_COMPARE_FASTER) &&
        !is_supported(compare, row, row->decided_by, row->verdict)) {
        row->verdict = SJ_COMPARE_INCONCLUSIVE;
    }
}

/* Makes a verdict inconclusive if times are estimates and differ by less than twice the standard
 * error of their difference. */
static void doubt_estimates(const sj_compare *compare, sj_compare_row *row)
{
    const double error = hypot(row->error_ns[0], row->error_ns[1]);
    const double difference = fabs(row->compared[1] - row->compared[0]);
    if (row->is_tested && error > 0 && compare->options.of == SJ_COMPARE_TIME &&
        difference < 2 * error) {
        row->verdict = SJ_COMPARE_INCONCLUSIVE;
    }
}

/* Writes the medians that the verdict compares. Removes the ratio if A's median is 0. */
static void keep_compared(const sj_compare *compare, sj_compare_row *row)
{
    const double *medians = tested_medians(compare, row, row->decided_by);
    row->compared[0] = medians[0];
    row->compared[1] = medians[1];
    if (medians[0] < 1) {
        sj_compare_test *test = &row->tests[row->decided_by];
        test->ratio = test->ratio_low = test->ratio_high = 0;
    }
}

/* Writes calls_ratio, if no calls were lost and the number of calls never varies on either side. */
static void compare_counts(const sj_compare *compare, sj_compare_row *row)
{
    for (int side = 0; side < 2; ++side) {
        if (compare->sets[side].count < LEAST_CONSTANT || compare->lost_calls[side] != 0 ||
            row->least_calls[side] < row->most_calls[side]) {
            return;
        }
    }
    row->calls_ratio = row->calls[0] > 0 ? row->calls[1] / row->calls[0] : 0;
}

/* Decides the verdict of a row that cannot be tested. Returns false if the row can be tested. A
 * function may have calls and no time, if no call ended: main of a program that ends by exit(). */
static bool judge_untested(const sj_compare *compare, size_t number)
{
    sj_compare_row *row = &compare->rows[number];
    const bool is_whole = number == 0;
    const bool is_absent[2] = {row->function_id[0] == 0 && (!is_whole || row->sessions[0] == 0),
                               row->function_id[1] == 0 && (!is_whole || row->sessions[1] == 0)};
    row->verdict = SJ_COMPARE_INCONCLUSIVE; /* a test may change this later */
    if (is_absent[0] && is_absent[1]) {
        return true;
    }
    if (row->is_unmatched) {
        row->verdict = SJ_COMPARE_UNMATCHED;
    } else if (is_absent[0] || is_absent[1]) {
        row->verdict = is_absent[0] ? SJ_COMPARE_ADDED : SJ_COMPARE_REMOVED;
    } else if (!is_whole &&
               (row->sessions[0] + row->sessions[1] == 0 || is_minor(compare, number))) {
        row->verdict = SJ_COMPARE_MINOR;
    } else {
        return row->sessions[0] == 0 || row->sessions[1] == 0;
    }
    return true;
}

/* A family of tests: its rows, and the results of their tests. */
typedef struct test_family {
    uint32_t *rows;
    double *p_values, *factors; /* one per test */
    size_t count;
    double share; /* the family's share of the chance of a false alarm */
} test_family;

static sj_status judge_family(sj_compare *compare, const test_family *family)
{
    const size_t test_count = tests_per_row(compare);
    for (size_t i = 0; i < test_count * family->count; ++i) {
        const uint32_t row = family->rows[i / test_count];
        SJ_TRY(test_row(compare, row, (sj_compare_by)(i % test_count)));
        family->p_values[i] = compare->rows[row].tests[i % test_count].p_value;
    }
    SJ_TRY(sj_adjust_holm(family->p_values, family->factors, test_count * family->count));
    for (size_t i = 0; i < test_count * family->count; ++i) {
        const uint32_t row = family->rows[i / test_count];
        compare->rows[row].tests[i % test_count].p_adjusted =
            fmin(1, family->p_values[i] / family->share);
        SJ_TRY(measure_shift(compare, row, (sj_compare_by)(i % test_count),
                             family->factors[i] / family->share));
    }
    for (size_t i = 0; i < family->count; ++i) {
        sj_compare_row *row = &compare->rows[family->rows[i]];
        row->is_tested = true;
        judge(compare, row);
    }
    return SJ_OK;
}

static void finish_rows(sj_compare *compare)
{
    const size_t test_count = tests_per_row(compare);
    for (size_t i = 0; i < compare->count; ++i) {
        sj_compare_row *row = &compare->rows[i];
        keep_compared(compare, row);
        compare_counts(compare, row);
        doubt_estimates(compare, row);
        row->needed_sessions = i == 0
                                   ? (uint32_t)sj_rank_needed(test_count, significant * row_0_share)
                                   : (uint32_t)sj_rank_needed(test_count * compare->judged,
                                                              significant * functions_share);
    }
}

sj_status sj_compare_judge(sj_compare *compare)
{
    const size_t tests = tests_per_row(compare) * compare->count;
    test_family family = {.rows = malloc(compare->count * sizeof(*family.rows)),
                          .p_values = malloc(tests * sizeof(*family.p_values)),
                          .factors = malloc(tests * sizeof(*family.factors))};
    sj_status status = family.rows == NULL || family.p_values == NULL || family.factors == NULL
                           ? SJ_ENOMEM
                           : SJ_OK;
    family.share = row_0_share;
    if (status == SJ_OK && !judge_untested(compare, 0)) {
        family.rows[family.count++] = 0;
        status = judge_family(compare, &family);
    }
    family.count = 0;
    family.share = functions_share;
    for (uint32_t i = 1; status == SJ_OK && i < compare->count; ++i) {
        if (!judge_untested(compare, i)) {
            family.rows[family.count++] = i;
        }
    }
    compare->judged = family.count;
    if (status == SJ_OK) {
        status = judge_family(compare, &family);
    }
    finish_rows(compare);
    free(family.rows);
    free(family.p_values);
    free(family.factors);
    return status;
}
