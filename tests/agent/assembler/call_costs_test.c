/* CPU time of calls: their own, that of calls below, and calls whose ends nobody saw. */
#include "agent/assembler/call_costs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void check_cost(sj_call_costs *costs, uint64_t call, uint64_t cpu_ns, sj_call_cost expected)
{
    sj_call_cost cost;
    assert_true(sj_call_costs_leave(costs, call, cpu_ns, &cost));
    assert_int_equal(cost.cpu_ns, expected.cpu_ns);
    assert_int_equal(cost.self_ns, expected.self_ns);
    assert_int_equal(cost.is_nested, expected.is_nested);
}

static void test_what_is_below_is_not_ones_own(void **state)
{
    sj_call_costs costs = {0};
    (void)state;
    assert_int_equal(sj_call_costs_enter(&costs, 1, 7, 1, 100), SJ_OK);
    assert_int_equal(sj_call_costs_enter(&costs, 2, 8, 3, 110), SJ_OK);
    assert_int_equal(sj_call_costs_enter(&costs, 3, 7, 4, 120), SJ_OK);
    check_cost(&costs, 3, 150, (sj_call_cost){30, 30, true});
    check_cost(&costs, 2, 160, (sj_call_cost){50, 20, false});
    assert_int_equal(sj_call_costs_enter(&costs, 4, 8, 2, 170), SJ_OK);
    check_cost(&costs, 4, 171, (sj_call_cost){1, 1, false});
    check_cost(&costs, 1, 200, (sj_call_cost){100, 49, false});
    assert_int_equal(costs.count, 0);
    sj_call_costs_deinit(&costs);
}

static void test_calls_whose_ends_were_not_seen_give_way(void **state)
{
    sj_call_costs costs = {0};
    sj_call_cost cost;
    (void)state;
    assert_int_equal(sj_call_costs_enter(&costs, 1, 7, 1, 0), SJ_OK);
    assert_int_equal(sj_call_costs_enter(&costs, 2, 8, 2, 10), SJ_OK);
    assert_int_equal(sj_call_costs_enter(&costs, 3, 9, 3, 20), SJ_OK);
    assert_int_equal(sj_call_costs_enter(&costs, 4, 8, 2, 30), SJ_OK);
    assert_int_equal(costs.count, 2);
    assert_false(sj_call_costs_leave(&costs, 3, 40, &cost));
    assert_false(sj_call_costs_leave(&costs, 99, 40, &cost));
    check_cost(&costs, 1, 50, (sj_call_cost){50, 50, false}); /* over one that was thrown out of */
    assert_false(sj_call_costs_leave(&costs, 4, 60, &cost));
    sj_call_costs_deinit(&costs);
}

static void test_a_clock_that_goes_back_costs_nothing(void **state)
{
    sj_call_costs costs = {0};
    (void)state;
    assert_int_equal(sj_call_costs_enter(&costs, 1, 7, 1, 100), SJ_OK);
    check_cost(&costs, 1, 90, (sj_call_cost){0, 0, false});
    sj_call_costs_deinit(&costs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_below_is_not_ones_own),
        cmocka_unit_test(test_calls_whose_ends_were_not_seen_give_way),
        cmocka_unit_test(test_a_clock_that_goes_back_costs_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
