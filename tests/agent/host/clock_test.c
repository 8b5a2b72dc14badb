/* Tests the step of clocks: of simulated clocks, and of this machine's clock. */
#include "agent/host/clock.h"

#include "tests/support/check.h"

static uint64_t step;
static uint64_t now;
static unsigned readings;
static unsigned
    /* number of the reading before which the thread moves to another processor; 0: none */
    moved_at;

/* Returns a time 1 to 13 steps after the previous one. */
static uint64_t read_made(void)
{
    readings++;
    now += step * (1 + readings * 7 % 13);
    return readings == moved_at ? ++now : now;
}

static uint64_t read_stopped(void)
{
    return 12345;
}

static int set_up(void **state)
{
    (void)state;
    now = 1000003;
    readings = 0;
    moved_at = 0;
    return 0;
}

static void the_step_of_a_clock_is_found(void **state)
{
    static const uint64_t steps[] = {1, 2, 26, 30, 1000};
    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        step = steps[i];
        assert_int_equal(sj_clock_step_of(read_made), steps[i]);
    }
}

/* Two processors' clocks may differ by less than a step. */
static void the_step_is_found_although_the_thread_changes_processors(void **state)
{
    (void)state;
    step = 26;
    moved_at = 300;
    assert_int_equal(sj_clock_step_of(read_made), 26);
}

static void clocks_without_a_step_have_one_of_a_tick(void **state)
{
    (void)state;
    assert_int_equal(sj_clock_step_of(read_stopped), 1);
    step = UINT64_C(1) << 33; /* more than a block can hold */
    assert_int_equal(sj_clock_step_of(read_made), 1);
}

static void times_are_stored_in_whole_steps_of_the_clock(void **state)
{
    (void)state;
    assert_int_equal(sj_clock_kept_step(1, 10, 0.5), 20);
    assert_int_equal(sj_clock_kept_step(1, 10, 0.48), 20);
    assert_int_equal(sj_clock_kept_step(26, 10, 1 / 2.6), 26);
    assert_int_equal(sj_clock_kept_step(26, 100, 1 / 2.6), 260);
    assert_int_equal(sj_clock_kept_step(26, 1, 1 / 2.6), 26);
    assert_int_equal(sj_clock_kept_step(1, 1, 40), 1);
    assert_int_equal(sj_clock_kept_step(1, 0, 0.5), 0); /* exact times */
    assert_int_equal(sj_clock_kept_step(1, 10, 0), 0);  /* unknown rate */
    assert_int_equal(sj_clock_kept_step(1, UINT64_MAX, 0.001), UINT32_MAX);
}

static void clock_readings_differ_by_multiples_of_the_step(void **state)
{
    enum { PAIRS = 1000, PAUSE_LOOPS = 500 };
    const uint32_t found = sj_clock_step();
    unsigned between = 0;
    (void)state;
    assert_int_not_equal(found, 0);
    for (unsigned i = 0; i < PAIRS; i++) {
        const uint64_t before = sj_clock_ticks();
        for (volatile int pause = 0; pause < PAUSE_LOOPS; pause++) {
        }
        between += (sj_clock_ticks() - before) % found != 0;
    }
    assert_true(between < PAIRS / 10); /* rarely, the thread moves to another processor */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_step_of_a_clock_is_found, set_up),
        cmocka_unit_test_setup(the_step_is_found_although_the_thread_changes_processors, set_up),
        cmocka_unit_test_setup(clocks_without_a_step_have_one_of_a_tick, set_up),
        cmocka_unit_test(times_are_stored_in_whole_steps_of_the_clock),
        cmocka_unit_test(clock_readings_differ_by_multiples_of_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
