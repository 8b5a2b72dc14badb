/* Tests the steps of a thread's time. Steps follow each other, and a time without activity is one
 * step. If another thread has reused the tid, there is no step. */
#include "agent/drain/thread_times.h"
#include "tests/support/check.h"

#include <unistd.h>

enum { THREAD = 7, FIRST_NS = 1000 };

/* The test system.waits checks how steps are sent. */
static sj_thread_times times;

static void check_step(uint32_t at, uint64_t from_ns, uint64_t length_ns, uint64_t cpu_ns,
                       uint64_t ready_ns)
{
    assert_true(at < times.count);
    assert_int_equal(times.steps[at].thread, THREAD);
    assert_int_equal(times.steps[at].from_ns, from_ns);
    assert_int_equal(times.steps[at].length_ns, length_ns);
    assert_int_equal(times.steps[at].used.cpu_ns, cpu_ns);
    assert_int_equal(times.steps[at].used.ready_ns, ready_ns);
}

static bool note(sj_thread_clock *clock, uint64_t now_ns, uint64_t cpu_ns, uint64_t ready_ns)
{
    const sj_thread_counters counters = {.cpu_ns = cpu_ns, .ready_ns = ready_ns};
    return sj_thread_times_note(&times, clock, THREAD, now_ns, &counters);
}

static void steps_follow_each_other(void **state)
{
    (void)state;
    sj_thread_clock clock = {0};
    times = (sj_thread_times){0};
    assert_false(note(&clock, FIRST_NS, 50, 5));
    assert_int_equal(times.count, 0); /* the time before the first sample is unknown */
    assert_false(note(&clock, FIRST_NS + 100, 110, 10));
    check_step(0, FIRST_NS, 100, 60, 5);
    /* three samples without activity are one step, which ends at the last of them */
    for (uint64_t look = 200; look <= 400; look += 100) {
        assert_false(note(&clock, FIRST_NS + look, 110, 10));
        assert_int_equal(times.count, 1);
    }
    assert_false(note(&clock, FIRST_NS + 500, 111, 10));
    check_step(1, FIRST_NS + 100, 300, 0, 0);
    check_step(2, FIRST_NS + 400, 100, 1, 0);
    assert_false(note(&clock, FIRST_NS + 600, 111, 10));
    assert_false(sj_thread_times_rest(&times, &clock, THREAD));
    check_step(3, FIRST_NS + 500, 100, 0, 0);
    assert_false(sj_thread_times_rest(&times, &clock, THREAD));
    assert_int_equal(times.count, 4);
    assert_int_equal(times.watched_ns, 600);
    assert_int_equal(times.cpu_ns, 61);
    assert_int_equal(times.ready_ns, 5);
}

/* A wait of 1,000 ns for a processor began before the first sample. Only the part since then is
 * counted. */
static void a_wait_before_the_first_sample_counts_from_that_sample(void **state)
{
    (void)state;
    sj_thread_clock clock = {0};
    times = (sj_thread_times){0};
    assert_false(note(&clock, FIRST_NS, 50, 5));
    assert_false(note(&clock, FIRST_NS + 60, 50, 5));
    assert_false(note(&clock, FIRST_NS + 100, 60, 1005));
    check_step(0, FIRST_NS, 60, 0, 0);
    check_step(1, FIRST_NS + 60, 40, 10, 90);
    assert_int_equal(times.cpu_ns + times.ready_ns, times.watched_ns);
}

static void another_thread_makes_no_step(void **state)
{
    (void)state;
    sj_thread_clock clock = {0};
    times = (sj_thread_times){0};
    assert_false(note(&clock, FIRST_NS, 500, 5));
    assert_false(note(&clock, FIRST_NS + 100, 3, 5));
    assert_int_equal(times.count, 0);
    assert_false(note(&clock, FIRST_NS + 200, 4, 5));
    check_step(0, FIRST_NS + 100, 100, 1, 0);
}

/* Memory may change before the kernel has updated the thread's times. */
static void memory_belongs_to_the_step_in_which_it_was_counted(void **state)
{
    (void)state;
    sj_thread_clock clock = {0};
    sj_thread_counters counters = {.cpu_ns = 5, .has_memory = true, .memory = {10, 1000, 4, 400}};
    times = (sj_thread_times){0};
    assert_false(sj_thread_times_note(&times, &clock, THREAD, FIRST_NS, &counters));
    counters.memory[SJ_SLOT_ALLOCATIONS] = 12;
    counters.memory[SJ_SLOT_ALLOCATED_BYTES] = 1500;
    assert_false(sj_thread_times_note(&times, &clock, THREAD, FIRST_NS + 100, &counters));
    /* an entry was reassigned, so the counter decreases */
    counters.memory[SJ_SLOT_ALLOCATIONS] = 11;
    assert_false(sj_thread_times_note(&times, &clock, THREAD, FIRST_NS + 200, &counters));
    check_step(0, FIRST_NS, 100, 0, 0);
    assert_true(times.steps[0].used.has_memory);
    assert_int_equal(times.steps[0].used.memory[SJ_SLOT_ALLOCATIONS], 2);
    assert_int_equal(times.steps[0].used.memory[SJ_SLOT_ALLOCATED_BYTES], 500);
    assert_int_equal(times.steps[0].used.memory[SJ_SLOT_FREES], 0);
    assert_int_equal(times.count, 1);
    counters.memory[SJ_SLOT_ALLOCATIONS] = 14; /* 12 of these have been reported */
    assert_false(sj_thread_times_note(&times, &clock, THREAD, FIRST_NS + 300, &counters));
    check_step(1, FIRST_NS + 100, 100, 0, 0);
    assert_int_equal(times.steps[1].used.memory[SJ_SLOT_ALLOCATIONS], 0);
    check_step(2, FIRST_NS + 200, 100, 0, 0);
    assert_int_equal(times.steps[2].used.memory[SJ_SLOT_ALLOCATIONS], 2);
}

static void a_long_rest_is_reported_before_it_ends(void **state)
{
    (void)state;
    sj_thread_clock clock = {0};
    times = (sj_thread_times){0};
    const uint64_t long_ns = UINT64_C(10000000000);
    assert_false(note(&clock, FIRST_NS, 1, 1));
    assert_false(note(&clock, FIRST_NS + long_ns, 1, 1));
    check_step(0, FIRST_NS, long_ns, 0, 0);
}

static void a_full_list_of_steps_is_reported(void **state)
{
    (void)state;
    sj_thread_clock clock = {0};
    times = (sj_thread_times){0};
    uint64_t now_ns = FIRST_NS;
    uint64_t noted = 0;
    while (!note(&clock, now_ns, noted, 0)) {
        now_ns += 100;
        noted++;
    }
    assert_in_range(times.count, SJ_THREAD_STEPS - 2, SJ_THREAD_STEPS);
    /* While no steps are sent, further steps are dropped. The sums are those of the kept steps. */
    for (int i = 0; i < 5; i++) {
        now_ns += 100;
        (void)note(&clock, now_ns, ++noted, 0);
    }
    assert_int_equal(times.count, SJ_THREAD_STEPS);
    assert_int_equal(times.watched_ns, 100 * SJ_THREAD_STEPS);
}

static void counters_of_the_own_thread_rise(void **state)
{
    (void)state;
    uint64_t cpu_ns = 0;
    uint64_t ready_ns = 0;
    uint64_t later_ns = 0;
    assert_int_equal(sj_thread_times_read(getpid(), (uint32_t)getpid(), &cpu_ns, &ready_ns), SJ_OK);
    do { /* the kernel updates the counter only at its timer ticks */
        assert_int_equal(sj_thread_times_read(getpid(), (uint32_t)getpid(), &later_ns, &ready_ns),
                         SJ_OK);
    } while (later_ns <= cpu_ns);
    assert_int_equal(sj_thread_times_read(getpid(), 0x7ffffffe, &cpu_ns, &ready_ns), SJ_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_each_other),
        cmocka_unit_test(a_wait_before_the_first_sample_counts_from_that_sample),
        cmocka_unit_test(another_thread_makes_no_step),
        cmocka_unit_test(memory_belongs_to_the_step_in_which_it_was_counted),
        cmocka_unit_test(a_long_rest_is_reported_before_it_ends),
        cmocka_unit_test(a_full_list_of_steps_is_reported),
        cmocka_unit_test(counters_of_the_own_thread_rise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
