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
    assert_int_equal(cost.bytes, expected.bytes);
}

static void test_what_is_below_is_not_ones_own(void **state)
{
    sj_call_costs costs = {0};
    (void)state;
    assert_int_equal(sj_call_costs_enter(&costs, 1, 7, 1, 100), SJ_OK);
    assert_int_equal(sj_call_costs_enter(&costs, 2, 8, 3, 110), SJ_OK);
    assert_int_equal(sj_call_costs_enter(&costs, 3, 7, 4, 120), SJ_OK);
    check_cost(&costs, 3, 150, (sj_call_cost){30, 30, true, SJ_COST_UNKNOWN});
    check_cost(&costs, 2, 160, (sj_call_cost){50, 20, false, SJ_COST_UNKNOWN});
    assert_int_equal(sj_call_costs_enter(&costs, 4, 8, 2, 170), SJ_OK);
    check_cost(&costs, 4, 171, (sj_call_cost){1, 1, false, SJ_COST_UNKNOWN});
    check_cost(&costs, 1, 200, (sj_call_cost){100, 49, false, SJ_COST_UNKNOWN});
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
    check_cost(
        &costs, 1, 50,
        (sj_call_cost){50, 50, false, SJ_COST_UNKNOWN}); /* over one that was thrown out of */
    assert_false(sj_call_costs_leave(&costs, 4, 60, &cost));
    sj_call_costs_deinit(&costs);
}

static void test_a_clock_that_goes_back_costs_nothing(void **state)
{
    sj_call_costs costs = {0};
    (void)state;
    assert_int_equal(sj_call_costs_enter(&costs, 1, 7, 1, 100), SJ_OK);
    check_cost(&costs, 1, 90, (sj_call_cost){0, 0, false, SJ_COST_UNKNOWN});
    sj_call_costs_deinit(&costs);
}

static void test_bytes_are_of_the_calls_that_say_so_at_both_ends(void **state)
{
    sj_call_costs costs = {0};
    (void)state;
    sj_call_costs_allocated(&costs, 1000);
    assert_int_equal(sj_call_costs_enter(&costs, 1, 7, 1, 100), SJ_OK);
    assert_int_equal(sj_call_costs_enter(&costs, 2, 8, 2, 110), SJ_OK);
    sj_call_costs_allocated(&costs, 1500);
    check_cost(&costs, 2, 120, (sj_call_cost){10, 10, false, SJ_COST_UNKNOWN});
    sj_call_costs_allocated(&costs, 1600);
    assert_int_equal(sj_call_costs_enter(&costs, 3, 8, 2, 130), SJ_OK);
    check_cost(&costs, 3, 140, (sj_call_cost){10, 10, false, SJ_COST_UNKNOWN});
    sj_call_costs_allocated(&costs, 1700);
    check_cost(&costs, 1, 150, (sj_call_cost){50, 30, false, 700});
    sj_call_costs_deinit(&costs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_below_is_not_ones_own),
        cmocka_unit_test(test_calls_whose_ends_were_not_seen_give_way),
        cmocka_unit_test(test_a_clock_that_goes_back_costs_nothing),
        cmocka_unit_test(test_bytes_are_of_the_calls_that_say_so_at_both_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
