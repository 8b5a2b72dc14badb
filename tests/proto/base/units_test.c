#include "proto/base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void durations_are_parsed_in_all_their_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {{"30", UINT64_C(30000000000)},
                 {"30s", UINT64_C(30000000000)},
                 {"0", 0},
                 {"250us", 250000},
                 {"16.6ms", 16600000},
                 {"7ns", 7},
                 {"5m", UINT64_C(300000000000)},
                 {"2h", UINT64_C(7200000000000)},
                 {"30d", UINT64_C(2592000000000000)}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t ns = 1;
        assert_true(sj_duration_parse(cases[i].text, &ns));
        assert_int_equal(ns, cases[i].ns);
    }
}

static void malformed_durations_are_refused(void **state)
{
    static const char *const texts[] = {"",      "s",   "-1s",       "+1s",          "1e3s",
                                        "0x10s", "1 s", "5 parsecs", ".5s",          "1.2.3s",
                                        "1w",    "inf", "nan",       "999999999999h"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint64_t ns = 1;
        assert_false(sj_duration_parse(texts[i], &ns));
        assert_int_equal(ns, 1);
    }
}

static void sizes_are_parsed_in_units_of_1024(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {{"4096", 4096},
                 {"64k", 65536},
                 {"64K", 65536},
                 {"512M", UINT64_C(512) << 20},
                 {"1G", UINT64_C(1) << 30},
                 {"2T", UINT64_C(2) << 40},
                 {"0", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t bytes = 1;
        assert_true(sj_size_parse(cases[i].text, &bytes));
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void malformed_sizes_are_refused(void **state)
{
    static const char *const texts[] = {"",    "M",   "-1", "1.5G",     "1MB",
                                        "1 M", "0x1", "1P", "9999999T", "18446744073709551616"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint64_t bytes = 1;
        assert_false(sj_size_parse(texts[i], &bytes));
        assert_int_equal(bytes, 1);
    }
}

static void counted_nouns_have_the_right_plural(void **state)
{
    (void)state;
    assert_string_equal(SJ_COUNTED(1, "thread"), "1 thread");
    assert_string_equal(SJ_COUNTED(0, "call"), "0 calls");
    assert_string_equal(SJ_COUNTED(2, "new finding"), "2 new findings");
    assert_string_equal(SJ_COUNTED(2, "process"), "2 processes");
    assert_string_equal(SJ_COUNTED(3, "batch"), "3 batches");
    assert_string_equal(SJ_COUNTED(3, "library"), "3 libraries");
    assert_string_equal(SJ_COUNTED(3, "key"), "3 keys");
    assert_string_equal(SJ_COUNTED(UINT64_MAX, "byte"), "18446744073709551615 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_parsed_in_all_their_units),
        cmocka_unit_test(malformed_durations_are_refused),
        cmocka_unit_test(sizes_are_parsed_in_units_of_1024),
        cmocka_unit_test(malformed_sizes_are_refused),
        cmocka_unit_test(counted_nouns_have_the_right_plural),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
