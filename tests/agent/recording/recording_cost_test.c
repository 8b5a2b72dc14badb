#include "agent/recording/recording_cost.h"

#include "tests/support/check.h"

static void hooking_and_starting_add_to_the_cost_of_probes(void **state)
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

static void a_factor_beyond_four_is_reported_unchanged(void **state)
{
    (void)state;
    bool at_least = true;
    const sj_recording_cost large = {.cpu_ns = 1000, .probe_cpu_ns = 900};
    assert_true(sj_recording_cost_times(&large, &at_least) == 10.0);
    assert_false(at_least);
    const sj_recording_cost watched = {.cpu_ns = 1000, .watch_cpu_ns = 950};
    assert_true(sj_recording_cost_times(&watched, &at_least) == 20.0);
    assert_true(at_least); /* the monitors measure only part of the cost */
    const sj_recording_cost beyond = {.cpu_ns = 1000, .watch_cpu_ns = 1200};
    assert_in_range((uint64_t)(10 * sj_recording_cost_times(&beyond, &at_least)), 330, 336);
    assert_true(at_least);
}

static void an_unknown_cost_is_not_estimated(void **state)
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

/* A pair of probes costs 40 ns in a loop. The cases are the CPU times of programs for each pair. */
static void probes_get_the_likeliest_part_of_the_remaining_time(void **state)
{
    (void)state;
    enum { PAIRS = 1000000 };
    static const struct {
        uint64_t pair_ns, least_ns, most_ns;
    } cases[] = {
        {1000, 39, 42}, /* the measured cost decides */
        {51, 37, 43},   /* the difference to the loop is the program's own time */
        {34, 23, 28},   /* the probes cost less than in the loop */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sj_recording_cost cost = {.cpu_ns = cases[i].pair_ns * PAIRS + 27,
                                  .probe_cpu_ns = UINT64_C(40) * PAIRS,
                                  .probe_pairs = PAIRS,
                                  .hook_cpu_ns = 20,
                                  .start_cpu_ns = 7};
        sj_recording_cost_settle(&cost);
        assert_in_range(cost.probe_cpu_ns / PAIRS, cases[i].least_ns, cases[i].most_ns);
        assert_true(sj_recording_cost_cpu_ns(&cost) < cost.cpu_ns);
        double least;
        double most;
        bool at_least;
        const double times = sj_recording_cost_times(&cost, &at_least);
        sj_recording_cost_range(&cost, &least, &most);
        assert_true(least <= times && times <= most && least < most);
    }
}

static void probes_cost_no_more_than_the_program_had(void **state)
{
    (void)state;
    sj_recording_cost cost = {.cpu_ns = 257,
                              .probe_cpu_ns = 331,
                              .probe_pairs = 10,
                              .hook_cpu_ns = 200,
                              .start_cpu_ns = 70};
    sj_recording_cost_settle(&cost);
    assert_int_equal(cost.probe_cpu_ns, 0);
    sj_recording_cost attached = {.probe_cpu_ns = 331, .probe_pairs = 10};
    sj_recording_cost_settle(&attached);
    assert_int_equal(attached.probe_cpu_ns, 331);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooking_and_starting_add_to_the_cost_of_probes),
        cmocka_unit_test(a_factor_beyond_four_is_reported_unchanged),
        cmocka_unit_test(an_unknown_cost_is_not_estimated),
        cmocka_unit_test(probes_cost_no_more_than_the_program_had),
        cmocka_unit_test(probes_get_the_likeliest_part_of_the_remaining_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
