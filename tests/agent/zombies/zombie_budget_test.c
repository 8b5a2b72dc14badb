#include "agent/zombies/zombie_budget.h"

#include "tests/support/check.h"

static sj_zombie_costs costs_of(uint64_t heap, uint64_t history)
{
    return (sj_zombie_costs){.program = 1000000, .heap = heap, .history = history};
}

/* The budget is 1 % of 1,000,000, which is 10,000. */
static bool check(sj_zombie_budget *budget, uint64_t heap, uint64_t history)
{
    const sj_zombie_costs costs = costs_of(heap, history);
    return sj_zombie_budget_check(budget, &costs, 10);
}

static void excess_costs_reduce_the_sampling(void **state)
{
    (void)state;
    sj_zombie_budget budget = {0};
    assert_true(!check(&budget, 9000, 1000) && budget.shift == 0 && !budget.is_paused);
    /* An eighth of the cost is within the budget. */
    assert_true(check(&budget, 70000, 0) && budget.shift == 3);
    assert_true(check(&budget, 10001, 0) && budget.shift == 4);
    assert_true(check(&budget, 6000, 7000) && budget.is_paused && budget.shift == 4);
    assert_true(check(&budget, UINT64_C(900000), 0) && budget.shift == 11);
    budget.shift = SJ_ZOMBIE_SHIFT_MOST;
    assert_true(!check(&budget, 20000, 0) && budget.shift == SJ_ZOMBIE_SHIFT_MOST);
}

static uint32_t checks_until_more(sj_zombie_budget *budget)
{
    uint32_t checks = 1;
    while (!check(budget, 2000, 0)) {
        checks++;
    }
    return checks;
}

/* The budget tries to keep more again, and waits longer after each failure. */
static void reduced_sampling_is_raised_again_later(void **state)
{
    (void)state;
    sj_zombie_budget budget = {0};
    assert_true(check(&budget, 15000, 0) && check(&budget, 0, 20000));
    assert_true(budget.shift == 1 && budget.is_paused);
    const uint32_t first = checks_until_more(&budget);
    assert_true(budget.shift == 0 && budget.is_paused);
    assert_true(check(&budget, 15000, 0) && budget.shift == 1);
    assert_true(checks_until_more(&budget) == 2 * first && budget.shift == 0);
    assert_true(!check(&budget, 9000, 0)); /* the costs are too near to the budget */
    assert_true(checks_until_more(&budget) == 2 * first && !budget.is_paused);
    for (uint32_t i = 0; i < 4 * first; i++) {
        assert_true(!check(&budget, 0, 0)); /* nothing is left out */
    }
}

/* The most expensive kind of watching is left out first, including delayed frees. Later, each kind
 * comes back in its turn. */
static void the_delayed_frees_are_governed_too(void **state)
{
    (void)state;
    sj_zombie_budget budget = {0};
    const sj_zombie_costs most = {.program = 1000000, .heap = 6000, .delayed_free = 30000};
    assert_true(sj_zombie_budget_check(&budget, &most, 10));
    assert_true(budget.delayed_shift == 2 && budget.shift == 0 && !budget.is_paused);
    const sj_zombie_costs sampled = {.program = 1000000, .heap = 12000, .delayed_free = 7500};
    assert_true(sj_zombie_budget_check(&budget, &sampled, 10));
    assert_true(budget.delayed_shift == 2 && budget.shift == 1);
    (void)checks_until_more(&budget);
    assert_true(budget.delayed_shift == 2 && budget.shift == 0);
    (void)checks_until_more(&budget);
    assert_true(budget.delayed_shift == 1 && budget.shift == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(excess_costs_reduce_the_sampling),
                                       cmocka_unit_test(reduced_sampling_is_raised_again_later),
                                       cmocka_unit_test(the_delayed_frees_are_governed_too)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
