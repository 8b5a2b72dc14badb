/* Progress: counted by the outermost work only, of the thread that watches. */
#include "proto/base/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static sj_progress last;
static uint32_t shown;

static void note(const sj_progress *progress)
{
    last = *progress;
    shown++;
}

static int set_up(void **state)
{
    (void)state;
    last = (sj_progress){0};
    shown = 0;
    sj_progress_watch(note);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sj_progress_watch(NULL);
    return 0;
}

static void test_parts_are_counted_up_to_the_end(void **unused)
{
    (void)unused;
    sj_progress_begin(2);
    sj_progress_step();
    assert_int_equal(last.done, 1);
    assert_int_equal(last.total, 2);
    assert_false(last.has_ended);
    sj_progress_step();
    sj_progress_end();
    assert_int_equal(last.done, 2);
    assert_true(last.has_ended);
    assert_int_equal(shown, 3);
}

static void test_work_within_work_is_not_counted_and_hides_the_total(void **unused)
{
    (void)unused;
    sj_progress_begin(10);
    sj_progress_step();
    sj_progress_begin(3);
    sj_progress_step();
    assert_int_equal(last.done, 1);
    assert_int_equal(last.total, 0);
    sj_progress_end();
    assert_false(last.has_ended);
    sj_progress_end();
    assert_true(last.has_ended);
}

static void test_nothing_is_shown_that_nobody_watches(void **unused)
{
    (void)unused;
    sj_progress_watch(NULL);
    assert_false(sj_progress_is_watched());
    sj_progress_begin(1);
    sj_progress_step();
    sj_progress_end();
    sj_progress_end(); /* of nothing */
    assert_int_equal(shown, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parts_are_counted_up_to_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_work_within_work_is_not_counted_and_hides_the_total,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_is_shown_that_nobody_watches, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
