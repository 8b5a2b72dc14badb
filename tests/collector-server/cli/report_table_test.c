/* For a part of a session, single calls are read only for columns that need them. */
#include "collector-server/cli/report_table.h"
#include "tests/support/check.h"

#include <string.h>

static bool reads_calls(const sj_report_selection *selection, const char *sort)
{
    char windows[] = "[[1,0,1000]]";
    const sj_call_choice choice = {.selection = windows};
    return strstr(sj_report_source(&choice, selection, sort), "JOIN calls") != NULL;
}

static void calls_are_read_for_the_columns_of_estimates_only(void **state)
{
    (void)state;
    sj_report_selection selection;
    sj_error error;
    sj_report_columns_fit(0, true, false, &selection);
    assert_false(reads_calls(&selection, "total"));
    assert_true(reads_calls(&selection, "untimed"));
    assert_true(reads_calls(&selection, "error"));
    assert_int_equal(sj_report_columns_parse("total,error", &selection, &error), SJ_OK);
    assert_true(reads_calls(&selection, "total"));
    sj_report_columns_data(&selection);
    assert_true(reads_calls(&selection, "total"));
}

static void whole_sessions_have_their_sums(void **state)
{
    (void)state;
    sj_report_selection selection;
    const sj_call_choice everything = {0};
    sj_report_columns_data(&selection);
    assert_non_null(
        strstr(sj_report_source(&everything, &selection, "total"), "FROM function_stats"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_read_for_the_columns_of_estimates_only),
        cmocka_unit_test(whole_sessions_have_their_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
