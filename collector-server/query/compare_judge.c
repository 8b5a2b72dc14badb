/* Design notes.
 *
 * Only functions with a real share of the time are tested, on logarithms of self time (so that a
 * shift is a ratio). Each is tested on the sum, and on the time without disturbances (typical.h).
 * Everything together is one question, all functions are another. P-values are adjusted for the
 * number of tests of their question (Holm) and for the other question. Intervals are widened by the
 * same adjustment. A verdict needs an adjusted p of 0.05, an effect that is large enough, and
 * medians that differ in the same direction. Means alone never decide. */
#include "collector-server/query/compare_internal.h"

#include <math.h>
#include <stdlib.h>

static const double significant = 0.05;

/* Both questions share the chance of a false alarm. With these shares, six sessions per side can
 * decide the whole, and eight can decide functions. */
static const double share_of_whole = 0.3;
static const double share_of_functions = 0.7;

/* The least number of sessions per side for which equal call counts are a rule. */
enum { LEAST_CONSTANT = 4 };

/* Time is tested twice, by sj_compare_by. Counts have no disturbances. */
static size_t tests_of(const sj_compare *compare)
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

static int measure_of(const sj_compare *compare, sj_compare_by by)
{
    return compare->options.of != SJ_COMPARE_TIME ? SJ_MEASURE_COST
           : by == SJ_COMPARE_BY_SUM              ? SJ_MEASURE_SELF
                                                  : SJ_MEASURE_TYPICAL;
}

/* Returns the medians of both sides that a test compares. */
static const double *medians_of(const sj_compare *compare, const sj_compare_row *row,
                                sj_compare_by by)
{
    return compare->options.of != SJ_COMPARE_TIME ? row->costs
           : by == SJ_COMPARE_BY_SUM              ? row->self_ns
                                                  : row->typical_ns;
}

/* Copies the logarithms of what a test compares, those of B after those of A. */
static void copy_logarithms(sj_compare *compare, size_t number, sj_compare_by by)
{
    double *values = compare->scratch;
    const int measure = measure_of(compare, by);
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

/* Finds the change and its interval, at the level that `factor` gives the p-value, so that both
 * agree. */
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
    const double *medians = medians_of(compare, row, by);
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

/* True if the other measure agrees with a verdict by `by`. Typical time has less noise. A change of
 * the sum alone may come from other work of the machine, so typical time must show it, too. A
 * change of typical time may be hidden by noise in the sum, so the sum must only not contradict it
 * with certainty. */
static bool is_borne_out(const sj_compare *compare, const sj_compare_row *row, sj_compare_by by,
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

/* The typical time decides if it finds a change, because it has less noise; the sum decides if only
 * it finds one. Otherwise the one with the narrower interval is shown. A change that the other
 * measure contradicts is not decided. */
static void judge(const sj_compare *compare, sj_compare_row *row)
{
    sj_compare_verdict verdicts[2];
    if (tests_of(compare) == 1) {
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
        !is_borne_out(compare, row, row->decided_by, row->verdict)) {
        row->verdict = SJ_COMPARE_INCONCLUSIVE;
    }
}

/* A difference of estimates below twice its standard error decides nothing. */
static void doubt_estimates(const sj_compare *compare, sj_compare_row *row)
{
    const double error = hypot(row->error_ns[0], row->error_ns[1]);
    const double difference = fabs(row->compared[1] - row->compared[0]);
    if (row->is_tested && error > 0 && compare->options.of == SJ_COMPARE_TIME &&
        difference < 2 * error) {
        row->verdict = SJ_COMPARE_INCONCLUSIVE;
    }
}

/* Keeps the medians that the verdict is about. A value that starts at 0 has no ratio. */
static void keep_compared(const sj_compare *compare, sj_compare_row *row)
{
    const double *medians = medians_of(compare, row, row->decided_by);
    row->compared[0] = medians[0];
    row->compared[1] = medians[1];
    if (medians[0] < 1) {
        sj_compare_test *test = &row->tests[row->decided_by];
        test->ratio = test->ratio_low = test->ratio_high = 0;
    }
}

/* Call counts are exact: if they never vary on either side, a difference is a fact. */
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

/* Judges a row that cannot be tested; returns false if it can. Calls that did not end were made but
 * have no time: main of a program that ends by exit(). */
static bool judge_untested(const sj_compare *compare, size_t number)
{
    sj_compare_row *row = &compare->rows[number];
    const bool is_whole = number == 0;
    const bool is_absent[2] = {row->function_id[0] == 0 && (!is_whole || row->sessions[0] == 0),
                               row->function_id[1] == 0 && (!is_whole || row->sessions[1] == 0)};
    row->verdict = SJ_COMPARE_INCONCLUSIVE; /* until a later test decides */
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

/* The rows of one question, and the results of their tests. */
typedef struct question {
    uint32_t *rows;
    double *p_values, *factors;
    size_t count;
    double share; /* its share of the chance of a false alarm */
} question;

static sj_status judge_question(sj_compare *compare, const question *asked)
{
    const size_t kinds = tests_of(compare);
    for (size_t i = 0; i < kinds * asked->count; ++i) {
        const uint32_t row = asked->rows[i / kinds];
        SJ_TRY(test_row(compare, row, (sj_compare_by)(i % kinds)));
        asked->p_values[i] = compare->rows[row].tests[i % kinds].p_value;
    }
    SJ_TRY(sj_adjust_holm(asked->p_values, asked->factors, kinds * asked->count));
    for (size_t i = 0; i < kinds * asked->count; ++i) {
        const uint32_t row = asked->rows[i / kinds];
        compare->rows[row].tests[i % kinds].p_adjusted = fmin(1, asked->p_values[i] / asked->share);
        SJ_TRY(measure_shift(compare, row, (sj_compare_by)(i % kinds),
                             asked->factors[i] / asked->share));
    }
    for (size_t i = 0; i < asked->count; ++i) {
        sj_compare_row *row = &compare->rows[asked->rows[i]];
        row->is_tested = true;
        judge(compare, row);
    }
    return SJ_OK;
}

static void finish_rows(sj_compare *compare)
{
    const size_t kinds = tests_of(compare);
    for (size_t i = 0; i < compare->count; ++i) {
        sj_compare_row *row = &compare->rows[i];
        keep_compared(compare, row);
        compare_counts(compare, row);
        doubt_estimates(compare, row);
        row->needed_sessions = i == 0
                                   ? (uint32_t)sj_rank_needed(kinds, significant * share_of_whole)
                                   : (uint32_t)sj_rank_needed(kinds * compare->judged,
                                                              significant * share_of_functions);
    }
}

sj_status sj_compare_judge(sj_compare *compare)
{
    const size_t tests = tests_of(compare) * compare->count;
    question asked = {.rows = malloc(compare->count * sizeof(*asked.rows)),
                      .p_values = malloc(tests * sizeof(*asked.p_values)),
                      .factors = malloc(tests * sizeof(*asked.factors))};
    sj_status status =
        asked.rows == NULL || asked.p_values == NULL || asked.factors == NULL ? SJ_ENOMEM : SJ_OK;
    asked.share = share_of_whole;
    if (status == SJ_OK && !judge_untested(compare, 0)) {
        asked.rows[asked.count++] = 0;
        status = judge_question(compare, &asked);
    }
    asked.count = 0;
    asked.share = share_of_functions;
    for (uint32_t i = 1; status == SJ_OK && i < compare->count; ++i) {
        if (!judge_untested(compare, i)) {
            asked.rows[asked.count++] = i;
        }
    }
    compare->judged = asked.count;
    if (status == SJ_OK) {
        status = judge_question(compare, &asked);
    }
    finish_rows(compare);
    free(asked.rows);
    free(asked.p_values);
    free(asked.factors);
    return status;
}
