/* Tests the costs of calls: their own, their callees', and those of calls whose exits were not
 * seen. */
#include "agent/assembler/call_costs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void enter(sj_call_costs *costs, sj_costly_call call, uint64_t cpu_ns)
{
    assert_int_equal(sj_call_costs_enter(costs, &call, SJ_COUNTER_CPU_NS, cpu_ns), SJ_OK);
}

static void check_cost(sj_call_costs *costs, uint64_t call, uint64_t cpu_ns, sj_call_cost expected)
{
    sj_call_cost cost;
    assert_true(sj_call_costs_leave(costs, call, SJ_COUNTER_CPU_NS, cpu_ns, &cost));
    assert_int_equal(cost.all, expected.all);
    assert_int_equal(cost.self, expected.self);
    assert_int_equal(cost.is_nested, expected.is_nested);
}

static void test_self_costs_exclude_callees(void **state)
{
    sj_call_costs costs = {0};
    (void)state;
    enter(&costs, (sj_costly_call){1, 7, 1}, 100);
    enter(&costs, (sj_costly_call){2, 8, 3}, 110);
    enter(&costs, (sj_costly_call){3, 7, 4}, 120);
    check_cost(&costs, 3, 150, (sj_call_cost){30, 30, true, true});
    check_cost(&costs, 2, 160, (sj_call_cost){50, 20, false, true});
    enter(&costs, (sj_costly_call){4, 8, 2}, 170);
    check_cost(&costs, 4, 171, (sj_call_cost){1, 1, false, true});
    check_cost(&costs, 1, 200, (sj_call_cost){100, 49, false, true});
    sj_call_costs_deinit(&costs);
}

static void test_calls_without_an_exit_are_removed(void **state)
{
    sj_call_costs costs = {0};
    sj_call_cost cost;
    (void)state;
    enter(&costs, (sj_costly_call){1, 7, 1}, 0);
    enter(&costs, (sj_costly_call){2, 8, 2}, 10);
    enter(&costs, (sj_costly_call){3, 9, 3}, 20);
    enter(&costs, (sj_costly_call){4, 8, 2}, 30);
    assert_int_equal(costs.count, 2);
    assert_false(sj_call_costs_leave(&costs, 3, SJ_COUNTER_CPU_NS, 40, &cost));
    assert_false(sj_call_costs_leave(&costs, 99, SJ_COUNTER_CPU_NS, 40, &cost));
    check_cost(&costs, 1, 50,
               /* includes its callees, whose exits were not seen */
               (sj_call_cost){50, 50, false, true});
    assert_false(sj_call_costs_leave(&costs, 4, SJ_COUNTER_CPU_NS, 60, &cost));
    sj_call_costs_deinit(&costs);
}

static void test_a_clock_that_goes_back_costs_nothing(void **state)
{
    sj_call_costs costs = {0};
    (void)state;
    enter(&costs, (sj_costly_call){1, 7, 1}, 100);
    check_cost(&costs, 1, 90, (sj_call_cost){0, 0, false, true});
    sj_call_costs_deinit(&costs);
}

static void test_counters_are_kept_apart(void **state)
{
    sj_call_costs costs = {0};
    sj_call_cost cost;
    const sj_costly_call outer = {1, 7, 1};
    const sj_costly_call inner = {2, 8, 2};
    (void)state;
    assert_int_equal(sj_call_costs_enter(&costs, &outer, SJ_COUNTER_CPU_NS, 10), SJ_OK);
    assert_int_equal(sj_call_costs_enter(&costs, &outer, SJ_COUNTER_FREES, 3), SJ_OK);
    assert_int_equal(sj_call_costs_enter(&costs, &inner, SJ_COUNTER_FREES, 4), SJ_OK);
    assert_true(sj_call_costs_leave(&costs, 2, SJ_COUNTER_FREES, 9, &cost));
    assert_int_equal(cost.all, 5);
    /* CPU time was not read at the entry of call 2. */
    assert_false(sj_call_costs_leave(&costs, 2, SJ_COUNTER_CPU_NS, 90, &cost));
    check_cost(&costs, 1, 60, (sj_call_cost){50, 50, false, true});
    assert_true(sj_call_costs_leave(&costs, 1, SJ_COUNTER_FREES, 10, &cost));
    assert_int_equal(cost.all, 7);
    assert_int_equal(cost.self, 2);
    assert_false(cost.is_first);
    /* A counter of a call ends only once. */
    assert_false(sj_call_costs_leave(&costs, 1, SJ_COUNTER_FREES, 11, &cost));
    sj_call_costs_deinit(&costs);
}

static void test_other_code_on_the_thread_makes_costs_unknown(void **state)
{
    sj_call_costs costs = {0};
    sj_call_cost cost;
    (void)state;
    enter(&costs, (sj_costly_call){1, 7, 1}, 100);
    sj_call_costs_distrust(&costs);
    enter(&costs, (sj_costly_call){2, 8, 2}, 110);
    check_cost(&costs, 2, 120, (sj_call_cost){10, 10, false, true});
    assert_false(sj_call_costs_leave(&costs, 1, SJ_COUNTER_CPU_NS, 200, &cost));
    sj_call_costs_deinit(&costs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_self_costs_exclude_callees),
        cmocka_unit_test(test_calls_without_an_exit_are_removed),
        cmocka_unit_test(test_a_clock_that_goes_back_costs_nothing),
        cmocka_unit_test(test_counters_are_kept_apart),
        cmocka_unit_test(test_other_code_on_the_thread_makes_costs_unknown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
