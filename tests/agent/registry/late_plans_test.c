/* How long programs wait for plans. */
#include "agent/registry/late_plans.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The plan of the FIFO has no end before the test gives it a writer. The second process would have
 * used up what it may wait, had it waited as long as that. */
static void a_process_does_not_wait_for_a_plan_that_is_late(void **state)
{
    enum { FIRST_NS = 1000000, SECOND_NS = 500000000 };
    char folder[] = "/dev/shm/sj-late-plans-XXXXXX";
    char fifo[64];
    uint64_t first_ns = FIRST_NS;
    uint64_t second_ns = SECOND_NS;
    sj_plan_ahead *ahead = NULL;
    sj_late_plans late = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(fifo, sizeof(fifo), "%s/program", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const sj_planner_options planner = {.module_path = fifo, .cache_directory = folder};
    assert_int_equal(sj_plan_ahead_start(&planner, &ahead), SJ_OK);
    assert_false(sj_late_plans_wait(&late, ahead, &planner, &first_ns));
    assert_int_equal(first_ns, 0);
    assert_false(sj_late_plans_wait(&late, ahead, &planner, &second_ns));
    assert_int_equal(second_ns, SECOND_NS);
    const int writer = open(fifo, O_RDWR | O_CLOEXEC);
    assert_true(sj_plan_ahead_wait(ahead, UINT32_MAX));
    /* It could not be made, as the file is no module: no process gets it. */
    assert_false(sj_late_plans_wait(&late, ahead, &planner, &second_ns));
    assert_int_equal(second_ns, SECOND_NS);
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
