#include "collector-server/query/statistics.h"

#include "collector-server/query/typical.h"
#include "proto/callgraph/histogram.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static double test_p(const double *a, size_t a_count, const double *b, size_t b_count)
{
    double p = -1;
    assert_int_equal(sj_rank_test(a, a_count, b, b_count, &p), SJ_OK);
    return p;
}

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9) {
        fail_msg("%.12f is not %.12f", value, expected);
    }
}

/* There are 70 ways to pick four of eight. The clearest two separate the sides. */
static void complete_separation_has_the_exact_p(void **state)
{
    (void)state;
    const double low[] = {1, 2, 3, 4};
    const double high[] = {5, 6, 7, 8};
    assert_near(test_p(low, 4, high, 4), 2.0 / 70);
    assert_near(test_p(high, 4, low, 4), 2.0 / 70);
    assert_near(test_p(low, 3, high, 3), 2.0 / 20);
}

static void equal_values_have_a_p_of_1(void **state)
{
    (void)state;
    const double same[] = {7, 7, 7, 7, 7};
    assert_near(test_p(same, 5, same, 5), 1);
    assert_near(test_p(same, 5, same, 0), 1);
}

/* Computes the exact test by counting every split of the pool, ties as midranks. */
static double brute_force_p(const double *pool, size_t count, size_t b_count)
{
    double ranks[16];
    for (size_t i = 0; i < count; ++i) {
        double below = 0;
        double equal = 0;
        for (size_t j = 0; j < count; ++j) {
            below += pool[j] < pool[i];
            equal += !(pool[j] < pool[i]) && !(pool[j] > pool[i]);
        }
        ranks[i] = below + (equal + 1) / 2;
    }
    const double middle = (double)b_count * (double)(count + 1) / 2;
    double seen = 0;
    for (size_t i = count - b_count; i < count; ++i) {
        seen += ranks[i];
    }
    double all = 0;
    double extreme = 0;
    for (unsigned picked = 0; picked < 1u << count; ++picked) {
        double sum = 0;
        if ((size_t)__builtin_popcount(picked) != b_count) {
            continue;
        }
        for (size_t i = 0; i < count; ++i) {
            sum += (picked >> i & 1) != 0 ? ranks[i] : 0;
        }
        all += 1;
        extreme += fabs(sum - middle) >= fabs(seen - middle) - 1e-9;
    }
    return extreme / all;
}

static void p_values_equal_those_counted_out(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int round = 0; round < 60; ++round) {
        double pool[16];
        const size_t a_count = 3 + (size_t)round % 4;
        const size_t b_count = 3 + (size_t)round % 5;
        for (size_t i = 0; i < a_count + b_count; ++i) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            pool[i] = (double)(random >> 60); /* 16 values: many ties */
        }
        assert_near(test_p(pool, a_count, pool + a_count, b_count),
                    brute_force_p(pool, a_count + b_count, b_count));
    }
}

/* Where both tests are possible, the approximation for large sets must be close to the exact
 * test. */
static void the_test_of_large_sets_agrees_with_the_exact_one(void **state)
{
    (void)state;
    double pool[40];
    for (size_t i = 0; i < 40; ++i) {
        pool[i] = (double)(i * 17 % 40) + (i < 20 ? 0 : 9);
    }
    const double p = test_p(pool, 20, pool + 20, 20);
    assert_true(p > 0.0005 && p < 0.05);
}

/* All values are 0 or 1: one side has 15 zeros, the other 15 ones. The rule of ties reduces the
 * variance. */
static void ties_of_large_sets_are_taken_into_account(void **state)
{
    (void)state;
    double pool[40];
    for (size_t i = 0; i < 40; ++i) {
        pool[i] = i % 20 < (i < 20 ? 15 : 5) ? 0 : 1;
    }
    /* Ranks of 20 equal values: 10.5 and 30.5, so that the sum is 100 above the middle; the
     * variance is 400 / 12 * (41 - 2 * (20^3 - 20) / (40 * 39)) = 40000 / 39. */
    assert_near(test_p(pool, 20, pool + 20, 20), erfc(99.5 / sqrt(40000.0 / 39) / sqrt(2.0)));
    assert_near(test_p(pool + 20, 20, pool, 20), test_p(pool, 20, pool + 20, 20));
}

static void shift_is_the_median_difference(void **state)
{
    (void)state;
    const double a[] = {10, 11, 12, 13, 1000};
    const double b[] = {15, 16, 17, 18, 19};
    sj_shift shift;
    assert_int_equal(sj_rank_shift(a, 5, b, 5, 0.05, &shift), SJ_OK);
    /* There are 25 differences. The middle is the 13th, and the ends are the 3rd from both ends. */
    assert_near(shift.middle, 5);
    assert_near(shift.low, -983);
    assert_near(shift.high, 8);
}

static void few_values_give_no_interval(void **state)
{
    (void)state;
    const double a[] = {10, 11, 12, 13};
    const double b[] = {15, 16, 17, 18, 19};
    const struct {
        size_t a, b;
        bool has_interval;
    } cases[] = {{1, 1, false}, {1, 5, false}, {2, 5, false},
                 {3, 4, false}, {3, 5, true},  {4, 4, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        sj_shift shift;
        assert_int_equal(sj_rank_shift(a, cases[i].a, b, cases[i].b, 0.05, &shift), SJ_OK);
        assert_int_equal(shift.has_interval, cases[i].has_interval);
        assert_true(shift.middle > 0);
    }
}

static void holm_adjusts_for_the_number_of_tests(void **state)
{
    (void)state;
    double p[] = {0.04, 0.001, 0.5, 0.01};
    double factors[4];
    assert_int_equal(sj_adjust_holm(p, factors, 4), SJ_OK);
    assert_near(p[1], 0.004);
    assert_near(p[3], 0.03);
    assert_near(p[0], 0.08);
    assert_near(p[2], 0.5);
    const double expected[] = {2, 4, 1, 3};
    for (size_t i = 0; i < 4; ++i) {
        assert_near(factors[i], expected[i]);
    }
    /* The adjusted values keep their order, and each is at most 1. */
    double factors_of_alike[5];
    double alike[] = {0.012, 0.01, 0.8, 0.011, 0.7};
    assert_int_equal(sj_adjust_holm(alike, factors_of_alike, 5), SJ_OK);
    assert_near(alike[1], 0.05);
    assert_near(alike[3], 0.05);
    assert_near(alike[0], 0.05);
    assert_near(alike[4], 1);
    assert_near(alike[2], 1);
}

static double next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (double)(*random >> 11);
}

/* At every level, the interval excludes 0 exactly if the test rejects. */
static void intervals_are_those_of_the_test(void **state)
{
    (void)state;
    static const double levels[] = {0.05, 0.01, 0.002};
    uint64_t random = 5;
    for (int round = 0; round < 300; ++round) {
        double values[24];
        const size_t a_count = 3 + (size_t)round % 9;
        const size_t b_count = 3 + (size_t)round % 10;
        for (size_t i = 0; i < a_count + b_count; ++i) {
            values[i] = next_random(&random) * (i < a_count ? 1 : 1 + 0.1 * (round % 20));
        }
        const double p = test_p(values, a_count, values + a_count, b_count);
        for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); ++i) {
            sj_shift shift;
            assert_int_equal(
                sj_rank_shift(values, a_count, values + a_count, b_count, levels[i], &shift),
                SJ_OK);
            assert_int_equal(shift.has_interval && (shift.low > 0 || shift.high < 0),
                             p <= levels[i]);
        }
    }
}

static void separated_sides_decide_from_the_needed_size_on(void **state)
{
    (void)state;
    assert_int_equal(sj_rank_needed(1, 0.05), 4);  /* 2 of 70 splits */
    assert_int_equal(sj_rank_needed(2, 0.05), 5);  /* 2 of 252 */
    assert_int_equal(sj_rank_needed(16, 0.05), 6); /* 2 of 924 */
    assert_int_equal(sj_rank_needed(0, 0.05), 1);
}

static double typical_of(const uint64_t *values, size_t count)
{
    sj_histogram histogram = {0};
    uint8_t bytes[4096];
    double total = 0;
    for (size_t i = 0; i < count; ++i) {
        assert_int_equal(sj_histogram_add(&histogram, values[i], 1), SJ_OK);
        total += (double)values[i] * 2;
    }
    const size_t size = sj_histogram_encode(&histogram, bytes, sizeof(bytes));
    sj_histogram_deinit(&histogram);
    return sj_typical_total_ns((sj_slice){bytes, size}, total, 2);
}

static void the_typical_time_ignores_outliers(void **state)
{
    (void)state;
    const uint64_t quiet[] = {100, 101, 102, 103, 104, 105, 106, 107};
    const uint64_t disturbed[] = {100, 101, 102, 103, 104, 105, 106, 50000};
    assert_near(typical_of(quiet, 8), 2 * 828);
    const double typical = typical_of(disturbed, 8);
    assert_true(typical > 1600 && typical < 1720);
    const uint8_t broken[] = {200, 1, 2};
    assert_near(sj_typical_total_ns((sj_slice){broken, sizeof(broken)}, 55, 1), 55);
    assert_near(sj_typical_total_ns((sj_slice){NULL, 0}, 55, 1), 55);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_separation_has_the_exact_p),
        cmocka_unit_test(equal_values_have_a_p_of_1),
        cmocka_unit_test(p_values_equal_those_counted_out),
        cmocka_unit_test(the_test_of_large_sets_agrees_with_the_exact_one),
        cmocka_unit_test(ties_of_large_sets_are_taken_into_account),
        cmocka_unit_test(shift_is_the_median_difference),
        cmocka_unit_test(few_values_give_no_interval),
        cmocka_unit_test(holm_adjusts_for_the_number_of_tests),
        cmocka_unit_test(intervals_are_those_of_the_test),
        cmocka_unit_test(separated_sides_decide_from_the_needed_size_on),
        cmocka_unit_test(the_typical_time_ignores_outliers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
