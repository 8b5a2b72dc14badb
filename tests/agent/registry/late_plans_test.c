/* Tests how long programs wait for plans. */
#include "agent/registry/late_plans.h"

#include "agent/host/clock.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The plan of the FIFO is not finished before the test opens a writer. The second process would
 * still have time to wait. */
static void a_process_does_not_wait_for_a_plan_that_is_late(void **state)
{
    const uint64_t first_most_ns = 1000000;
    const uint64_t second_most_ns = UINT64_C(600000000000);
    char folder[] = "/dev/shm/sj-late-plans-XXXXXX";
    char fifo[64];
    uint64_t first_ns = first_most_ns;
    uint64_t second_ns = second_most_ns;
    sj_plan_ahead *ahead = NULL;
    sj_late_plans late = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(fifo, sizeof(fifo), "%s/program", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const sj_planner_options planner = {.module_path = fifo, .cache_directory = folder};
    assert_int_equal(sj_plan_ahead_start(&planner, &ahead), SJ_OK);
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    assert_int_equal(sj_late_plans_ask(&late, ahead, &planner, now_ns, &second_ns),
                     SJ_PLAN_BEING_MADE);
    assert_int_equal(second_ns, second_most_ns);
    assert_int_equal(sj_late_plans_ask(&late, ahead, &planner, now_ns - first_most_ns, &first_ns),
                     SJ_PLAN_LATE);
    assert_int_equal(first_ns, 0);
    assert_int_equal(sj_late_plans_ask(&late, ahead, &planner, now_ns, &second_ns), SJ_PLAN_LATE);
    assert_int_equal(second_ns, second_most_ns);
    const int writer = open(fifo, O_RDWR | O_CLOEXEC);
    assert_true(sj_plan_ahead_wait(ahead, UINT32_MAX));
    /* The plan could not be made, because the file is not a module. No process gets it. */
    assert_int_equal(sj_late_plans_ask(&late, ahead, &planner, now_ns, &second_ns), SJ_PLAN_LATE);
    assert_int_equal(second_ns, second_most_ns);
    sj_late_plans_deinit(&late);
    sj_plan_ahead_free(ahead);
    close(writer);
    assert_int_equal(unlink(fifo), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_does_not_wait_for_a_plan_that_is_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
