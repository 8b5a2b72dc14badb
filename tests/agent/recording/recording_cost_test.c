#include "agent/recording/recording_cost.h"

#include "tests/support/check.h"

static void hooking_and_starting_count_beside_probes(void **state)
{
    (void)state;
    const sj_recording_cost cost = {.cpu_ns = 1000,
                                    .probe_cpu_ns = 300,
                                    .hook_cpu_ns = 150,
                                    .start_cpu_ns = 50,
                                    .plan_wall_ns = 9000};
    bool at_least = true;
    assert_int_equal(sj_recording_cost_cpu_ns(&cost), 500);
    assert_true(sj_recording_cost_times(&cost, &at_least) == 2.0);
    assert_false(at_least);
}

static void a_rest_within_the_error_is_no_ratio(void **state)
{
    (void)state;
    bool at_least = false;
    const sj_recording_cost most = {.cpu_ns = 1000, .probe_cpu_ns = 767};
    assert_true(sj_recording_cost_times(&most, &at_least) == 4.0);
    assert_true(at_least);
    const sj_recording_cost beyond = {.cpu_ns = 1000, .probe_cpu_ns = 1200};
    at_least = false;
    assert_true(sj_recording_cost_times(&beyond, &at_least) == 4.0);
    assert_true(at_least);
}

static void what_is_not_known_is_not_estimated(void **state)
{
    (void)state;
    bool at_least = true;
    const sj_recording_cost attached = {.probe_cpu_ns = 500};
    assert_true(sj_recording_cost_times(&attached, &at_least) == 0);
    assert_false(at_least);
    const sj_recording_cost nothing = {.cpu_ns = 500};
    assert_true(sj_recording_cost_times(&nothing, &at_least) == 0);
    assert_false(at_least);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooking_and_starting_count_beside_probes),
        cmocka_unit_test(a_rest_within_the_error_is_no_ratio),
        cmocka_unit_test(what_is_not_known_is_not_estimated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
