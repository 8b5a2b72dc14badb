/* Design notes
 *
 * A tree of keys holds for each node one slot a sample: calls, total and self time; functions are
 * the tree of depth one. Only what takes a real share of the time is tested, on logarithms of self
 * time, once as summed and once without disturbances (typical.h) (so that a shift is a ratio), and
 * p-values are adjusted for their number (Holm). A verdict needs both: an adjusted p of 0.05, and
 * an effect worth a word. Means alone never decide. */
#include "collector-server/query/compare_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double default_effect = 0.02;
static const double default_share = 0.005;
static const double significant = 0.05;

sj_compare_of sj_compare_of_find(const char *name)
{
    static const char *const names[SJ_COMPARE_OF] = {
        [SJ_COMPARE_TIME] = "time", [SJ_COMPARE_CPU] = "cpu", [SJ_COMPARE_ALLOCATED] = "allocated"};
    for (int of = 0; of < SJ_COMPARE_OF; of++) {
        if (strcmp(names[of], name) == 0) {
            return (sj_compare_of)of;
        }
    }
    return SJ_COMPARE_OF;
}

const char *sj_compare_verdict_name(sj_compare_verdict verdict, sj_compare_of of)
{
    static const char *const names[] = {
        [SJ_COMPARE_SAME] = "same",     [SJ_COMPARE_SLOWER] = "slower",
        [SJ_COMPARE_FASTER] = "faster", [SJ_COMPARE_INCONCLUSIVE] = "inconclusive",
        [SJ_COMPARE_ADDED] = "added",   [SJ_COMPARE_REMOVED] = "removed",
        [SJ_COMPARE_MINOR] = "minor",
    };
    if (of == SJ_COMPARE_ALLOCATED && verdict == SJ_COMPARE_SLOWER) {
        return "more";
    }
    return of == SJ_COMPARE_ALLOCATED && verdict == SJ_COMPARE_FASTER ? "less" : names[verdict];
}

/* Time is tested twice, by sj_compare_by; what is counted has no disturbances. */
static int tests_of(const sj_compare *compare)
{
    return compare->options.of == SJ_COMPARE_TIME ? 2 : 1;
}

void sj_compare_free(sj_compare *compare)
{
    if (compare == NULL) {
        return;
    }
    sj_session_set_deinit(&compare->sets[0]);
    sj_session_set_deinit(&compare->sets[1]);
    free(compare->rows);
    free(compare->values);
    free(compare->slots);
    free(compare->scratch);
    free(compare);
}

const sj_compare_row *sj_compare_rows(const sj_compare *compare, size_t *count)
{
    *count = compare->count;
    return compare->rows;
}

int64_t sj_compare_folded_calls(const sj_compare *compare, int side)
{
    return compare->folded_calls[side];
}

size_t sj_compare_samples(const sj_compare *compare, int side, int64_t *lost_calls)
{
    *lost_calls = compare->lost_calls[side];
    return compare->sets[side].count;
}

static sj_status count_lost(sj_compare *compare, const sj_compare_side *side, int number,
                            sj_error *error)
{
    static const char sql[] = "SELECT lost_calls, folded_calls FROM sessions WHERE session_id = ?1";
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(side->database, sql, -1, &statement, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the sessions to compare: %s",
                       sqlite3_errmsg(side->database));
    }
    const sj_session_set *set = &compare->sets[number];
    for (size_t i = 0; i < set->count; ++i) {
        if (i != 0 && set->samples[i].session_id == set->samples[i - 1].session_id) {
            continue; /* another mark of the same session */
        }
        sqlite3_bind_int64(statement, 1, set->samples[i].session_id);
        if (sqlite3_step(statement) == SQLITE_ROW) {
            compare->lost_calls[number] += sqlite3_column_int64(statement, 0);
            compare->folded_calls[number] += sqlite3_column_int64(statement, 1);
        }
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return SJ_OK;
}

/* Copies one measure of one side; returns how many samples there are. */
static size_t copy_values(const sj_compare *compare, size_t row, int side, int measure,
                          double *output)
{
    const size_t first = side == 0 ? 0 : compare->sets[0].count;
    const size_t count = compare->sets[side].count;
    for (size_t i = 0; i < count; ++i) {
        output[i] = *sj_compare_value(compare, row, first + i, measure);
    }
    return count;
}

static void summarize(sj_compare *compare, size_t number)
{
    sj_compare_row *row = &compare->rows[number];
    for (int side = 0; side < 2; ++side) {
        const size_t count = copy_values(compare, number, side, SJ_MEASURE_CALLS, compare->scratch);
        double sum = 0;
        row->least_calls[side] = row->most_calls[side] = compare->scratch[0];
        for (size_t i = 0; i < count; ++i) {
            const double calls = compare->scratch[i];
            sum += calls;
            row->sessions[side] += calls > 0;
            row->least_calls[side] = fmin(row->least_calls[side], calls);
            row->most_calls[side] = fmax(row->most_calls[side], calls);
        }
        row->calls[side] = sum / (double)count;
        copy_values(compare, number, side, SJ_MEASURE_TOTAL, compare->scratch);
        row->total_ns[side] = sj_median(compare->scratch, count);
        copy_values(compare, number, side, SJ_MEASURE_SELF, compare->scratch);
        row->self_ns[side] = sj_median(compare->scratch, count);
        copy_values(compare, number, side, SJ_MEASURE_TYPICAL, compare->scratch);
        row->typical_ns[side] = sj_median(compare->scratch, count);
        copy_values(compare, number, side, SJ_MEASURE_COST, compare->scratch);
        row->costs[side] = sj_median(compare->scratch, count);
    }
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

/* Tests self time of one row by one measure. */
static sj_status test_row(sj_compare *compare, size_t number, sj_compare_by by)
{
    const int measure = compare->options.of != SJ_COMPARE_TIME ? SJ_MEASURE_COST
                        : by == SJ_COMPARE_BY_SUM              ? SJ_MEASURE_SELF
                                                               : SJ_MEASURE_TYPICAL;
    sj_compare_test *test = &compare->rows[number].tests[by];
    double *a = compare->scratch;
    double *b = compare->scratch + compare->sets[0].count;
    const size_t a_count = copy_values(compare, number, 0, measure, a);
    const size_t b_count = copy_values(compare, number, 1, measure, b);
    for (size_t i = 0; i < a_count + b_count; ++i) {
        a[i] = log(fmax(a[i], 1.0)); /* b follows a */
    }
    sj_shift shift;
    SJ_TRY(sj_rank_test(a, a_count, b, b_count, &test->p_value));
    SJ_TRY(sj_rank_shift(a, a_count, b, b_count, &shift));
    test->ratio = exp(shift.middle);
    test->ratio_low = shift.has_interval ? exp(shift.low) : 0;
    test->ratio_high = shift.has_interval ? exp(shift.high) : 0;
    return SJ_OK;
}

static sj_compare_verdict judge_test(const sj_compare *compare, const sj_compare_test *test)
{
    const double effect = compare->options.least_effect;
    if (test->p_adjusted <= significant && test->ratio >= 1 + effect) {
        return SJ_COMPARE_SLOWER;
    }
    if (test->p_adjusted <= significant && test->ratio <= 1 / (1 + effect)) {
        return SJ_COMPARE_FASTER;
    }
    const bool repeated = compare->sets[0].count >= 4 && compare->sets[1].count >= 4;
    const bool close = test->ratio_low > 1 / (1 + effect) && test->ratio_high < 1 + effect;
    return repeated && close ? SJ_COMPARE_SAME : SJ_COMPARE_INCONCLUSIVE;
}

/* Whether the other measure agrees with a verdict by `by`. Typical time is the quieter one: what
 * the sum alone finds may be what else the machine did, so typical time must show it, too. The sum
 * of what typical time finds may be lost in noise: it must not be sure of the opposite. */
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

/* The typical time decides when it finds something, because it is the quieter measure; the sum when
 * only it does; else the one with the narrower interval is shown. What the other measure does not
 * bear out is not decided. */
static void judge(const sj_compare *compare, sj_compare_row *row)
{
    sj_compare_verdict verdicts[2];
    if (tests_of(compare) == 1) {
        row->decided_by = SJ_COMPARE_BY_SUM;
        row->verdict = judge_test(compare, &row->tests[SJ_COMPARE_BY_SUM]);
        return;
    }
    for (int by = 0; by < 2; ++by) {
        verdicts[by] = judge_test(compare, &row->tests[by]);
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

/* A difference of estimates that is less than twice its standard error decides nothing. */
static void doubt_estimates(const sj_compare *compare, sj_compare_row *row)
{
    const double error = hypot(row->error_ns[0], row->error_ns[1]);
    const double difference = fabs(row->self_ns[1] - row->self_ns[0]);
    if (error > 0 && compare->options.of == SJ_COMPARE_TIME && difference < 2 * error) {
        row->verdict = SJ_COMPARE_INCONCLUSIVE;
    }
}

/* Judges what has nothing to be tested; false: it has. Calls that did not end were made, but have
 * no time: main of a program that ends by exit(). */
static bool judge_untested(const sj_compare *compare, size_t number)
{
    sj_compare_row *row = &compare->rows[number];
    if (row->function_id[0] == 0 || row->function_id[1] == 0) {
        row->verdict = row->function_id[0] == 0 ? SJ_COMPARE_ADDED : SJ_COMPARE_REMOVED;
    } else if (row->sessions[0] + row->sessions[1] == 0 || is_minor(compare, number)) {
        row->verdict = SJ_COMPARE_MINOR;
    } else if (row->sessions[0] == 0 || row->sessions[1] == 0) {
        row->verdict = SJ_COMPARE_INCONCLUSIVE;
    } else {
        return false;
    }
    return true;
}

static sj_status test_all(sj_compare *compare, double *p_values, uint32_t *tested, size_t *tests)
{
    const int kinds = tests_of(compare);
    *tests = 0;
    for (size_t i = 0; i < compare->count; ++i) {
        if (i != 0 && judge_untested(compare, i)) {
            continue;
        }
        for (int by = 0; by < kinds; ++by) {
            SJ_TRY(test_row(compare, i, (sj_compare_by)by));
            p_values[(size_t)kinds * *tests + (size_t)by] = compare->rows[i].tests[by].p_value;
        }
        tested[(*tests)++] = (uint32_t)i;
    }
    return SJ_OK;
}

static sj_status judge_all(sj_compare *compare)
{
    const size_t kinds = (size_t)tests_of(compare);
    double *p_values = malloc(2 * compare->count * sizeof(*p_values));
    uint32_t *tested = malloc(compare->count * sizeof(*tested));
    size_t tests = 0;
    sj_status status = p_values == NULL || tested == NULL ? SJ_ENOMEM : SJ_OK;
    if (status == SJ_OK) {
        status = test_all(compare, p_values, tested, &tests);
    }
    if (status == SJ_OK) {
        status = sj_adjust_holm(p_values, kinds * tests);
    }
    for (size_t i = 0; status == SJ_OK && i < tests; ++i) {
        sj_compare_row *row = &compare->rows[tested[i]];
        for (size_t by = 0; by < kinds; by++) {
            row->tests[by].p_adjusted = p_values[kinds * i + by];
        }
        judge(compare, row);
        doubt_estimates(compare, row);
    }
    free(p_values);
    free(tested);
    return status;
}

static sj_status compare_sides(sj_compare *compare, const sj_compare_side sides[2], sj_error *error)
{
    for (int side = 0; side < 2; ++side) {
        SJ_TRY(sj_session_set_read(sides[side].database, sides[side].set,
                                   SJ_SESSION_SET_MAX_SAMPLES, &compare->sets[side], error));
    }
    uint32_t whole;
    compare->samples = compare->sets[0].count + compare->sets[1].count;
    compare->scratch = malloc(compare->samples * sizeof(double));
    if (compare->scratch == NULL || sj_compare_add_row(compare, 0, 0, &whole) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the comparison");
    }
    for (int side = 0; side < 2; ++side) {
        SJ_TRY(sj_compare_measure(compare, sides[side].database, side, error));
        SJ_TRY(sj_compare_read_errors(compare, sides[side].database, side, error));
        SJ_TRY(count_lost(compare, &sides[side], side, error));
    }
    for (size_t i = 0; i < compare->count; ++i) {
        summarize(compare, i);
    }
    return judge_all(compare) == SJ_OK ? SJ_OK
                                       : sj_fail(error, SJ_ENOMEM, "no memory for the comparison");
}

sj_status sj_compare_run(const sj_compare_side sides[2], const sj_compare_options *options,
                         sj_compare **compare, sj_error *error)
{
    sj_compare *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the comparison");
    }
    made->options = *options;
    if (made->options.least_effect <= 0) {
        made->options.least_effect = default_effect;
    }
    if (made->options.least_share <= 0) {
        made->options.least_share = default_share;
    }
    const sj_status status = compare_sides(made, sides, error);
    if (status != SJ_OK) {
        sj_compare_free(made);
        return status;
    }
    *compare = made;
    return SJ_OK;
}
