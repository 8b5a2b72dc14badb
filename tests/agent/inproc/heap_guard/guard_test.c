/* Guarding an allocation for its class does not change which later allocations are sampled. */
#include "agent/inproc/heap_guard/internal.h"

#include "tests/support/check.h"

static void the_sampling_distance_is_restored_after_forced_allocations(void **state)
{
    (void)state;
    sj_sampling_countdown = 77;
    assert_false(sj_guard_is_forced());
    sj_guard_next_allocations(true);
    assert_true(sj_guard_is_forced());
    /* The entry calls the agent for the next allocation. */
    assert_int_equal(sj_sampling_countdown, 1);
    sj_sampling_countdown--; /* as the entry counts down */
    sj_guard_next_allocations(false);
    assert_false(sj_guard_is_forced());
    assert_int_equal(sj_sampling_countdown, 77);
}

static void a_new_thread_still_draws_a_distance(void **state)
{
    (void)state;
    sj_sampling_countdown = 0;
    sj_guard_next_allocations(true);
    sj_sampling_countdown--;
    sj_guard_next_allocations(false);
    assert_int_equal(sj_sampling_countdown, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sampling_distance_is_restored_after_forced_allocations),
        cmocka_unit_test(a_new_thread_still_draws_a_distance)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
