/* Compares histograms of paths with plain histograms. */
#include "proto/callgraph/path_histogram.h"
#include "tests/support/fail_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { STORED_BYTES = 1 << 14 };

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return *random >> 8;
}

/* Checks that the stored form of a path's histogram is that of a plain histogram, byte for byte. */
static void assert_is(const sj_path_histogram *path, const sj_histogram *plain)
{
    uint8_t bytes[2][STORED_BYTES];
    const size_t size = sj_histogram_encode(plain, bytes[0], STORED_BYTES);
    assert_in_range(size, 1, sj_path_histogram_encoded_bound(path));
    assert_int_equal(sj_path_histogram_encode(path, bytes[1], STORED_BYTES), size);
    assert_memory_equal(bytes[0], bytes[1], size);
    assert_int_equal(sj_path_histogram_encode(path, bytes[1], size - 1), 0); /* not enough space */
}

/* Fills both histograms with the same values: one to thousands of them, similar or spread out. */
static void make_both(uint32_t *random, sj_path_histogram *path, sj_histogram *plain)
{
    const uint32_t values = 1u << next_random(random) % 13;
    const uint32_t spread = 1u << next_random(random) % 24;
    const uint64_t base = next_random(random);
    *path = (sj_path_histogram){0};
    *plain = (sj_histogram){0};
    for (uint32_t i = 0; i < values; i++) {
        const uint64_t value = base + next_random(random) % spread;
        const uint64_t count = next_random(random) % 100 != 0 ? 1 : next_random(random);
        assert_int_equal(sj_path_histogram_add(path, value, count + 1), SJ_OK);
        assert_int_equal(sj_histogram_add(plain, value, count + 1), SJ_OK);
    }
}

static void test_path_histograms_equal_plain_histograms(void **state)
{
    (void)state;
    enum { ROUNDS = 300 };
    uint32_t random = 1;
    uint32_t lists = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        sj_path_histogram path, again;
        sj_histogram plain;
        uint8_t stored[STORED_BYTES];
        make_both(&random, &path, &plain);
        lists += path.octave_count == 0;
        assert_is(&path, &plain);
        const size_t size = sj_path_histogram_encode(&path, stored, sizeof(stored));
        const sj_slice bytes = {.data = stored, .size = size};
        assert_int_equal(sj_path_histogram_decode(bytes, &again), SJ_OK);
        assert_is(&again, &plain);
        sj_path_histogram_deinit(&again);
        sj_path_histogram_deinit(&path);
        sj_histogram_deinit(&plain);
    }
    assert_in_range(lists, ROUNDS / 10, ROUNDS - ROUNDS / 10); /* lists and octaves both occur */
}

static void test_path_histograms_are_added_and_subtracted(void **state)
{
    (void)state;
    enum { ROUNDS = 200 };
    uint32_t random = 2;
    sj_histogram sum = {0}, expected = {0};
    sj_path_histogram merged = {0};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        sj_path_histogram path;
        sj_histogram plain;
        make_both(&random, &path, &plain);
        if (round % 2 == 0) {
            assert_int_equal(sj_path_histogram_add_to(&path, &sum), SJ_OK);
            assert_int_equal(sj_path_histogram_merge(&merged, &path), SJ_OK);
            assert_int_equal(sj_histogram_merge(&expected, &plain), SJ_OK);
        } else {
            sj_path_histogram both = {0};
            assert_int_equal(sj_path_histogram_merge(&both, &path), SJ_OK);
            assert_is(&both, &plain);
            assert_int_equal(sj_path_histogram_add_to(&path, &sum), SJ_OK);
            sj_path_histogram_subtract_from(&both, &sum);
            sj_path_histogram_deinit(&both);
        }
        sj_path_histogram_deinit(&path);
        sj_histogram_deinit(&plain);
    }
    assert_is(&merged, &expected);
    assert_is(&merged, &sum);
    sj_path_histogram_deinit(&merged);
    sj_histogram_deinit(&sum);
    sj_histogram_deinit(&expected);
}

/* Most call paths have few bins. Such a path needs no memory beyond its line. */
static void test_a_path_with_few_bins_allocates_nothing(void **state)
{
    (void)state;
    sj_path_histogram path = {0};
    fail_alloc_at(0);
    for (uint32_t i = 0; i < SJ_PATH_COUNT_MOST; i++) {
        for (uint64_t bin = 1; bin <= SJ_PATH_BINS_WITHIN; bin++) {
            assert_int_equal(sj_path_histogram_add(&path, 1000 * bin, 1), SJ_OK);
        }
    }
    assert_false(fail_alloc_stop());
    sj_path_histogram_deinit(&path);
}

static void test_a_failed_add_leaves_the_histogram_unchanged(void **state)
{
    (void)state;
    sj_path_histogram path = {0};
    sj_histogram plain = {0};
    uint32_t failures = 0;
    for (uint64_t bin = 1; bin < 1000; bin++) {
        const uint64_t value = 16 + bin * bin * bin;
        fail_alloc_at(0);
        const sj_status status = sj_path_histogram_add(&path, value, 1);
        assert_int_equal(fail_alloc_stop(), status == SJ_ENOMEM);
        if (status != SJ_OK) {
            failures++;
            if (!sj_path_histogram_is_empty(&path)) {
                assert_is(&path, &plain);
            }
            assert_int_equal(sj_path_histogram_add(&path, value, 1), SJ_OK);
        }
        assert_int_equal(sj_histogram_add(&plain, value, 1), SJ_OK);
    }
    assert_in_range(failures, 10, 100);
    assert_is(&path, &plain);
    sj_histogram_deinit(&plain);
    sj_path_histogram_deinit(&path);
}

static void test_bad_stored_forms_are_refused(void **state)
{
    (void)state;
    const uint8_t bad[][5] = {{2}, {1, 5}, {1, 5, 0}, {1, 5, 1, 0, 1}};
    const sj_status expected[] = {SJ_EVERSION, SJ_ECORRUPT, SJ_ECORRUPT, SJ_ECORRUPT};
    const size_t sizes[] = {1, 2, 3, 5};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        sj_path_histogram path;
        const sj_slice bytes = {.data = bad[i], .size = sizes[i]};
        assert_int_equal(sj_path_histogram_decode(bytes, &path), expected[i]);
        assert_true(sj_path_histogram_is_empty(&path));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path_histograms_equal_plain_histograms),
        cmocka_unit_test(test_path_histograms_are_added_and_subtracted),
        cmocka_unit_test(test_a_path_with_few_bins_allocates_nothing),
        cmocka_unit_test(test_a_failed_add_leaves_the_histogram_unchanged),
        cmocka_unit_test(test_bad_stored_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
