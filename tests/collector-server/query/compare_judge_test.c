/* Comparisons of made-up measurements: tests how often the verdict is wrong, which differences it
 * finds, and that all columns of one row agree. */
#include "collector-server/query/compare_internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FUNCTIONS = 8, SIDE = 10, COMPARISONS = 1000, MEASURED = SJ_MEASURE_COST };

static uint64_t random_state;

static double uniform(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

static double noise(double spread)
{
    return exp(spread * sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()));
}

/* Returns a comparison with `side` sessions in each set. It has a row for the sum and one for each
 * function. The caller fills in the values. */
static sj_compare *make(size_t functions, size_t side)
{
    sj_compare *made = calloc(1, sizeof(*made));
    assert_non_null(made);
    made->options = (sj_compare_options){.least_effect = 0.02, .least_share = 0.005};
    made->sets[0].count = made->sets[1].count = side;
    made->samples = 2 * side;
    made->scratch = calloc(made->samples, sizeof(double));
    assert_non_null(made->scratch);
    for (uint32_t i = 0; i <= functions; ++i) {
        uint32_t row;
        assert_int_equal(sj_compare_add_row(made, 0, i, &row), SJ_OK);
        made->rows[row].function_id[0] = made->rows[row].function_id[1] = i;
    }
    return made;
}

/* Fills in one function of one session. The first row is the sum. */
static void put(sj_compare *made, size_t row, size_t sample, double calls, double self_ns,
                double typical_ns)
{
    const double values[MEASURED] = {calls, self_ns, self_ns, typical_ns};
    for (int measure = 0; measure < MEASURED; ++measure) {
        *sj_compare_value(made, row, sample, measure) = values[measure];
        *sj_compare_value(made, 0, sample, measure) += values[measure];
    }
}

static const sj_compare_row *judge(sj_compare *made)
{
    size_t count;
    for (size_t row = 0; row < made->count; ++row) {
        sj_compare_summarize(made, row);
    }
    assert_int_equal(sj_compare_judge(made), SJ_OK);
    return sj_compare_rows(made, &count);
}

/* Makes sessions with the noise of real machines: of each session and of each function. Now and
 * then a call is disturbed, which only the sum shows. B's function `slowed` takes `factor` times as
 * long. */
static sj_compare *simulate(double spread, size_t slowed, double factor)
{
    sj_compare *made = make(FUNCTIONS, SIDE);
    for (size_t sample = 0; sample < made->samples; ++sample) {
        const double of_run = noise(spread / 2);
        for (size_t row = 1; row <= FUNCTIONS; ++row) {
            const bool is_slowed = row == slowed && sample >= SIDE;
            const double typical =
                1e6 * (double)row * of_run * noise(spread) * (is_slowed ? factor : 1);
            put(made, row, sample, 100, typical * (uniform() < 0.05 ? 1.5 : 1 + spread * uniform()),
                typical);
        }
    }
    return made;
}

static int is_alarm(const sj_compare_row *row)
{
    return row->verdict == SJ_COMPARE_SLOWER || row->verdict == SJ_COMPARE_FASTER;
}

static void equal_sets_raise_few_alarms(void **state)
{
    (void)state;
    static const double spreads[] = {0.05, 0.01, 0.2};
    const size_t count = getenv("SJ_LONG") != NULL ? sizeof(spreads) / sizeof(spreads[0]) : 1;
    for (size_t i = 0; i < count; ++i) {
        int alarms = 0;
        random_state = 8 - i;
        for (int n = 0; n < COMPARISONS; ++n) {
            sj_compare *made = simulate(spreads[i], 0, 1);
            const sj_compare_row *rows = judge(made);
            int any = 0;
            for (size_t row = 0; row <= FUNCTIONS; ++row) {
                any |= is_alarm(&rows[row]);
            }
            alarms += any;
            sj_compare_free(made);
        }
        print_message("noise of %.0f %%: %d false alarms in %d comparisons\n", spreads[i] * 100,
                      alarms, (int)COMPARISONS);
        assert_in_range(alarms, 0, COMPARISONS * 5 / 100);
    }
}

/* The shares are what man/sojourn-diff.1 states. */
static void a_change_of_ten_percent_is_found_with_ten_sessions_a_side(void **state)
{
    (void)state;
    static const struct {
        double spread;
        int least_percent;
    } cases[] = {{0.02, 99}, {0.03, 95}, {0.05, 50}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        enum { TRIES = 100 };
        int found = 0;
        random_state = 70 + i;
        for (int n = 0; n < TRIES; ++n) {
            sj_compare *made = simulate(cases[i].spread, 5, 1.1);
            found += judge(made)[5].verdict == SJ_COMPARE_SLOWER;
            sj_compare_free(made);
        }
        print_message("noise of %.0f %%: +10 %% found in %d of %d\n", cases[i].spread * 100, found,
                      (int)TRIES);
        assert_true(found * 100 >= cases[i].least_percent * TRIES);
    }
}

static void the_needed_number_of_sessions_is_enough_to_decide(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 8, 14, 27, 40};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        const size_t functions = counts[i];
        for (size_t side = 1; side <= 9; ++side) {
            sj_compare *made = make(functions, side);
            for (size_t sample = 0; sample < made->samples; ++sample) {
                const double away = (sample < side ? 1 : 3) + 0.001 * (double)sample;
                for (size_t row = 1; row <= functions; ++row) {
                    put(made, row, sample, 10, 1e6 * away, 1e6 * away);
                }
            }
            const sj_compare_row *rows = judge(made);
            for (size_t row = 0; row <= functions; ++row) {
                assert_int_equal(is_alarm(&rows[row]), side >= rows[row].needed_sessions);
                assert_int_equal(rows[row].tests[0].ratio_low > 0,
                                 side >= rows[row].needed_sessions);
            }
            assert_int_equal(rows[0].needed_sessions, 6);
            assert_int_equal(rows[1].needed_sessions, functions == 1   ? 5
                                                      : functions == 8 ? 6
                                                      : functions < 40 ? 7
                                                                       : 8);
            sj_compare_free(made);
        }
    }
}

static void intervals_agree_with_verdicts(void **state)
{
    (void)state;
    int decided = 0;
    random_state = 3;
    for (int n = 0; n < 200; ++n) {
        sj_compare *made = simulate(0.03, 1 + (size_t)n % FUNCTIONS, 1 + 0.001 * n);
        const sj_compare_row *rows = judge(made);
        for (size_t row = 0; row <= FUNCTIONS; ++row) {
            for (int by = 0; by < 2; ++by) {
                const sj_compare_test *test = &rows[row].tests[by];
                const bool is_apart = test->ratio_low > 1 || test->ratio_high < 1;
                assert_int_equal(test->p_adjusted <= 0.05, is_apart);
            }
            if (rows[row].verdict == SJ_COMPARE_SLOWER) {
                decided++;
                assert_true(rows[row].tests[rows[row].decided_by].ratio_low > 1);
                assert_true(rows[row].compared[1] > rows[row].compared[0]);
            }
        }
        sj_compare_free(made);
    }
    assert_true(decided > 100);
}

/* One function takes no time in A, so its time in B is not a multiple of that. */
static void a_time_of_zero_gives_no_ratio(void **state)
{
    (void)state;
    sj_compare *made = make(2, SIDE);
    for (size_t sample = 0; sample < made->samples; ++sample) {
        const double ns = 1e6 + 1000 * (double)sample;
        put(made, 1, sample, 10, ns, ns);
        put(made, 2, sample, 10, sample < SIDE ? 0 : ns, sample < SIDE ? 0 : ns);
    }
    const sj_compare_row *row = &judge(made)[2];
    assert_int_equal(row->verdict, SJ_COMPARE_SLOWER);
    assert_true(row->compared[0] < 1 && row->compared[1] > 1e6);
    assert_true(row->tests[row->decided_by].ratio < 1e-9);
    sj_compare_free(made);
}

static void sets_without_calls_are_not_the_same(void **state)
{
    (void)state;
    for (int calling = 0; calling < 3; ++calling) { /* calls in: none, B, A */
        sj_compare *made = make(1, SIDE);
        for (size_t sample = 0; sample < made->samples; ++sample) {
            if (calling != 0 && (sample < SIDE) == (calling == 2)) {
                put(made, 1, sample, 10, 1e6, 1e6);
            }
        }
        const sj_compare_row *whole = judge(made);
        assert_int_equal(whole->verdict, calling == 0   ? SJ_COMPARE_INCONCLUSIVE
                                         : calling == 1 ? SJ_COMPARE_ADDED
                                                        : SJ_COMPARE_REMOVED);
        assert_true(whole->tests[0].ratio < 1e-9 && whole->tests[1].ratio < 1e-9);
        sj_compare_free(made);
    }
}

static double calls_ratio(size_t side, double varying, int64_t lost_calls)
{
    sj_compare *made = make(1, side);
    made->lost_calls[1] = lost_calls;
    for (size_t sample = 0; sample < made->samples; ++sample) {
        put(made, 1, sample, (sample < side ? 100 : 112) + varying * (double)(sample % 2), 1e6,
            1e6);
    }
    const double ratio = judge(made)[1].calls_ratio;
    sj_compare_free(made);
    return ratio;
}

static void counts_that_never_vary_are_a_finding(void **state)
{
    (void)state;
    assert_true(fabs(calls_ratio(4, 0, 0) - 1.12) < 1e-9);
    assert_true(calls_ratio(3, 0, 0) < 1e-9); /* so few may be equal by chance */
    assert_true(calls_ratio(4, 1, 0) < 1e-9);
    assert_true(calls_ratio(4, 0, 1) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_sets_raise_few_alarms),
        cmocka_unit_test(a_change_of_ten_percent_is_found_with_ten_sessions_a_side),
        cmocka_unit_test(the_needed_number_of_sessions_is_enough_to_decide),
        cmocka_unit_test(intervals_agree_with_verdicts),
        cmocka_unit_test(a_time_of_zero_gives_no_ratio),
        cmocka_unit_test(sets_without_calls_are_not_the_same),
        cmocka_unit_test(counts_that_never_vary_are_a_finding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
