/* The one allocation that is guarded for its class does not change which others are sampled. */
#include "agent/inproc/heap_guard/internal.h"

#include "tests/support/check.h"

static void the_distance_goes_on_as_it_was(void **state)
{
    (void)state;
    sj_zombie_countdown = 77;
    assert_false(sj_guard_is_forced());
    sj_zombies_guard_next(true);
    assert_true(sj_guard_is_forced());
    assert_int_equal(sj_zombie_countdown, 1); /* the next allocation comes by */
    sj_zombie_countdown--;                    /* as its entry counts */
    sj_zombies_guard_next(false);
    assert_false(sj_guard_is_forced());
    assert_int_equal(sj_zombie_countdown, 77);
}

static void a_thread_that_has_drawn_none_still_draws(void **state)
{
    (void)state;
    sj_zombie_countdown = 0;
    sj_zombies_guard_next(true);
    sj_zombie_countdown--;
    sj_zombies_guard_next(false);
    assert_int_equal(sj_zombie_countdown, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_distance_goes_on_as_it_was),
                                       cmocka_unit_test(a_thread_that_has_drawn_none_still_draws)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
