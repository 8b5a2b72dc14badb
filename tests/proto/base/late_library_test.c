/* Tests libraries that are loaded when they are first used. */
#include "proto/base/late_library.h"

#include "tests/support/check.h"

typedef struct functions {
    double (*cosine)(double angle);
    double (*sine)(double angle);
} functions;

static const sj_late_symbol cosine = {"cos", offsetof(functions, cosine)};

static void test_functions_of_a_library_are_loaded(void **state)
{
    (void)state;
    const sj_late_symbol symbols[] = {cosine, {"sin", offsetof(functions, sine)}};
    functions made = {0};
    sj_error error = {0};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sj_late_library_load("libm.so.6", symbols, 2, &made, &error), SJ_OK);
        assert_true(made.cosine(0) > 0.99 && made.sine(0) < 0.01);
    }
}

static void test_a_missing_library_or_function_is_named(void **state)
{
    (void)state;
    const sj_late_symbol symbols[] = {cosine, {"no_such_function", offsetof(functions, sine)}};
    functions made = {0};
    sj_error error = {0};
    assert_int_equal(sj_late_library_load("libno-such.so.7", &cosine, 1, &made, &error),
                     SJ_ENOTFOUND);
    assert_non_null(strstr(error.text, "cannot load libno-such.so.7"));
    assert_int_equal(sj_late_library_load("libm.so.6", symbols, 2, &made, &error), SJ_ENOTFOUND);
    assert_non_null(strstr(error.text, "libm.so.6 has no function no_such_function"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_of_a_library_are_loaded),
        cmocka_unit_test(test_a_missing_library_or_function_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
