#include "collector-server/import/decimal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void numbers_are_read_exactly_and_rounded_down(void **state)
{
    static const struct {
        const char *text;
        int shift;
        int64_t units;
        uint32_t parts;
    } cases[] = {
        {"0", 0, 0, 0},
        {"12.3456789012345", 3, 12345, 678901234},
        {"1632957892.123456", 3, 1632957892123, 456000000},
        {"9223372036854775807", 0, INT64_MAX, 0},
        {"1.5e3", 0, 1500, 0},
        {"1E-3", 3, 1, 0},
        {"1e-400", 0, 0, 0},
        {"-1.5", 0, -2, 500000000},
        {"-7", 3, -7000, 0},
        {"1699999999999999.9999", 3, 1699999999999999999, 900000000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sj_decimal value;
        assert_int_equal(
            sj_decimal_parse(cases[i].text, strlen(cases[i].text), cases[i].shift, &value), SJ_OK);
        assert_int_equal(value.units, cases[i].units);
        assert_int_equal(value.parts, cases[i].parts);
    }
}

static void malformed_numbers_are_refused(void **state)
{
    static const char *const bad[] = {"", "-", ".", "1.2.3", "1e", "1e+", "0x10", "1 ", "NaN"};
    static const char *const large[] = {"9223372036854775808", "1e30"};
    sj_decimal value;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(sj_decimal_parse(bad[i], strlen(bad[i]), 0, &value), SJ_ECORRUPT);
    }
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        assert_int_equal(sj_decimal_parse(large[i], strlen(large[i]), 0, &value), SJ_ELIMIT);
    }
}

static void a_sum_carries_and_does_not_overflow(void **state)
{
    sj_decimal sum;
    (void)state;
    assert_int_equal(sj_decimal_add(&(sj_decimal){.units = 1, .parts = 600000000},
                                    &(sj_decimal){.units = 2, .parts = 400000000}, &sum),
                     SJ_OK);
    assert_int_equal(sum.units, 4);
    assert_int_equal(sum.parts, 0);
    assert_int_equal(sj_decimal_add(&(sj_decimal){.units = INT64_MAX, .parts = 600000000},
                                    &(sj_decimal){.parts = 400000000}, &sum),
                     SJ_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_exactly_and_rounded_down),
        cmocka_unit_test(malformed_numbers_are_refused),
        cmocka_unit_test(a_sum_carries_and_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
