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

static void probes_cost_no_more_than_the_program_had(void **state)
{
    (void)state;
    sj_recording_cost cost = {
        .cpu_ns = 257, .probe_cpu_ns = 331, .hook_cpu_ns = 20, .start_cpu_ns = 7};
    sj_recording_cost_limit(&cost);
    assert_int_equal(cost.probe_cpu_ns, 230);
    sj_recording_cost within = {.cpu_ns = 257, .probe_cpu_ns = 31, .hook_cpu_ns = 20};
    sj_recording_cost_limit(&within);
    assert_int_equal(within.probe_cpu_ns, 31);
    sj_recording_cost attached = {.probe_cpu_ns = 331};
    sj_recording_cost_limit(&attached);
    assert_int_equal(attached.probe_cpu_ns, 331);
}

static void there_is_no_ratio_where_a_part_is_not_counted(void **state)
{
    (void)state;
    bool at_least = true;
    const sj_recording_cost cost = {.cpu_ns = 1000, .probe_cpu_ns = 10, .watches_memory = true};
    assert_true(sj_recording_cost_times(&cost, &at_least) == 0);
    assert_false(at_least);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooking_and_starting_count_beside_probes),
        cmocka_unit_test(a_rest_within_the_error_is_no_ratio),
        cmocka_unit_test(what_is_not_known_is_not_estimated),
        cmocka_unit_test(probes_cost_no_more_than_the_program_had),
        cmocka_unit_test(there_is_no_ratio_where_a_part_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
