#include "proto/callgraph/histogram.h"
#include "tests/support/fail_alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void test_every_value_lies_in_its_bin(void **state)
{
    (void)state;
    for (uint32_t bin = 0; bin < SJ_HISTOGRAM_BINS; bin++) {
        assert_int_equal(sj_histogram_bin(sj_histogram_low(bin)), bin);
        assert_int_equal(sj_histogram_bin(sj_histogram_high(bin)), bin);
        if (bin + 1 < SJ_HISTOGRAM_BINS) {
            assert_int_equal(sj_histogram_high(bin) + 1, sj_histogram_low(bin + 1));
        }
    }
    assert_int_equal(sj_histogram_high(SJ_HISTOGRAM_BINS - 1), UINT64_MAX);
    for (uint64_t value = 0; value < 2 * (uint64_t)SJ_HISTOGRAM_SHORT; value++) {
        const uint32_t bin = sj_histogram_bin(value);
        assert_true(value >= sj_histogram_low(bin) && value <= sj_histogram_high(bin));
    }
}

static void test_quantiles_are_within_five_percent(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    uint64_t *values = malloc(COUNT * sizeof(*values));
    sj_histogram histogram = {0};
    uint64_t random = 1;
    for (int i = 0; i < COUNT; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        values[i] = (uint64_t)exp((double)(random >> 40) / (1 << 24) * 30);
        assert_int_equal(sj_histogram_add(&histogram, values[i], 1), SJ_OK);
    }
    qsort(values, COUNT, sizeof(*values), compare_u64);
    const double quantiles[] = {0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        const double exact =
            (double)values[quantiles[i] > 0 ? (size_t)ceil(quantiles[i] * COUNT) - 1 : 0];
        const double told = (double)sj_histogram_quantile(&histogram, quantiles[i]);
        assert_true(fabs(told - exact) <= exact * 0.05 + 0.5);
    }
    assert_int_equal(sj_histogram_quantile(&histogram, NAN), sj_histogram_quantile(&histogram, 0));
    sj_histogram_deinit(&histogram);
    assert_int_equal(sj_histogram_quantile(&histogram, 0.5), 0);
    free(values);
}

static void test_few_values_have_their_nearest_ranks(void **state)
{
    (void)state;
    sj_histogram histogram = {0};
    const int64_t values[] = {1000, 2000, 900000};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sj_histogram_add(&histogram, (uint64_t)values[i], 1), SJ_OK);
    }
    const double quantiles[] = {0, 0.33, 0.5, 0.66, 0.67, 0.95, 0.99, 1};
    const int ranks[] = {0, 0, 1, 1, 2, 2, 2, 2};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        const sj_quantile found = sj_histogram_find_quantile(&histogram, quantiles[i]);
        const int64_t exact = values[ranks[i]];
        const int64_t told = sj_quantile_within(&found, (int64_t)found.value, 1000, 900000);
        assert_int_equal(found.is_least, ranks[i] == 0);
        assert_int_equal(found.is_most, ranks[i] == 2);
        assert_true(ranks[i] == 1 ? llabs(told - exact) <= exact / 30 : told == exact);
    }
    sj_histogram_deinit(&histogram);
    /* as a double, 0.07 * 100 is a little more than 7 */
    for (uint64_t value = 1; value <= 100; value++) {
        assert_int_equal(sj_histogram_add(&histogram, value, 1), SJ_OK);
    }
    assert_int_equal(sj_histogram_quantile(&histogram, 0.07), 7);
    sj_histogram_deinit(&histogram);
}

static void test_a_stored_histogram_is_read_back_and_merged(void **state)
{
    (void)state;
    sj_histogram histogram = {0};
    const uint64_t values[] = {0, 5, 5, 1000, 1u << 20, UINT64_MAX, 17, 300};
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(sj_histogram_add(&histogram, values[i], i + 1), SJ_OK);
    }
    uint8_t stored[64];
    const size_t size = sj_histogram_encode(&histogram, stored, sizeof(stored));
    assert_in_range(size, 1, 40);
    sj_histogram again;
    const sj_slice bytes = {.data = stored, .size = size};
    assert_int_equal(sj_histogram_decode(bytes, &again), SJ_OK);
    for (double q = 0; q <= 1; q += 0.125) {
        assert_int_equal(sj_histogram_quantile(&again, q), sj_histogram_quantile(&histogram, q));
    }
    assert_int_equal(sj_histogram_merge(&again, &histogram), SJ_OK);
    assert_int_equal(again.octaves[0].count[5], 2 * (2 + 3));
    assert_int_equal(sj_histogram_encode(&histogram, stored, 3), 0); /* not enough space */
    sj_histogram_deinit(&again);
    sj_histogram_deinit(&histogram);
}

static void test_a_spread_out_path_stays_small(void **state)
{
    (void)state;
    sj_histogram histogram = {0};
    for (uint64_t value = 100; value < 10000; value += 3) {
        /* values over a factor of 100 */
        assert_int_equal(sj_histogram_add(&histogram, value, 1), SJ_OK);
    }
    uint8_t stored[4096];
    assert_in_range(sj_histogram_encode(&histogram, stored, sizeof(stored)), 1, 300);
    sj_histogram_deinit(&histogram);
}

static void test_bad_stored_forms_are_refused(void **state)
{
    (void)state;
    const struct {
        uint8_t bytes[8];
        size_t size;
        sj_status expected;
    } bad[] = {
        {{0}, 0, SJ_ECORRUPT},
        {{2}, 1, SJ_EVERSION},
        {{1, 5}, 2, SJ_ECORRUPT},             /* no count */
        {{1, 5, 0}, 3, SJ_ECORRUPT},          /* an empty bin */
        {{1, 5, 1, 0, 1}, 5, SJ_ECORRUPT},    /* the same bin twice */
        {{1, 0xff, 0x7f, 1}, 4, SJ_ECORRUPT}, /* beyond the last bin */
        {{1, 0x80}, 2, SJ_ECORRUPT},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sj_histogram histogram;
        const sj_slice bytes = {.data = bad[i].bytes, .size = bad[i].size};
        assert_int_equal(sj_histogram_decode(bytes, &histogram), bad[i].expected);
        assert_null(histogram.octaves);
    }
}

static void test_a_failed_add_leaves_the_histogram_unchanged(void **state)
{
    (void)state;
    sj_histogram histogram = {0};
    assert_int_equal(sj_histogram_add(&histogram, 1000, 1), SJ_OK);
    fail_alloc_at(0);
    assert_int_equal(sj_histogram_add(&histogram, 1, 1), SJ_ENOMEM);
    assert_true(fail_alloc_stop());
    assert_int_equal(histogram.octave_count, 1);
    sj_histogram_deinit(&histogram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_value_lies_in_its_bin),
        cmocka_unit_test(test_quantiles_are_within_five_percent),
        cmocka_unit_test(test_few_values_have_their_nearest_ranks),
        cmocka_unit_test(test_a_stored_histogram_is_read_back_and_merged),
        cmocka_unit_test(test_a_spread_out_path_stays_small),
        cmocka_unit_test(test_bad_stored_forms_are_refused),
        cmocka_unit_test(test_a_failed_add_leaves_the_histogram_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
