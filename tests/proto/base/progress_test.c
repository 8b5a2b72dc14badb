/* Tests progress. It counts the outermost work, and works in lists, of the thread that watches. */
#include "proto/base/progress.h"

#include <pthread.h>
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

static void assert_part(double expected)
{
    assert_float_equal(last.part, expected, 1e-9);
}

static void test_parts_are_counted_up_to_the_end(void **unused)
{
    (void)unused;
    const sj_progress_work work = sj_progress_begin(2);
    sj_progress_step(work);
    assert_part(0.5);
    assert_false(last.has_ended);
    sj_progress_step(work);
    assert_part(1);
    sj_progress_end(work);
    assert_true(last.has_ended);
    assert_int_equal(shown, 4);
}

static void test_progress_may_jump_or_stay(void **unused)
{
    (void)unused;
    const sj_progress_work work = sj_progress_begin(100);
    sj_progress_reach(work, 40);
    sj_progress_reach(work, 40);
    assert_part(0.4);
    assert_int_equal(shown, 3);
    sj_progress_reach(work, 300);
    assert_part(1);
    sj_progress_end(work);
}

static void test_inner_work_hides_the_total_of_the_outer_work(void **unused)
{
    (void)unused;
    const sj_progress_work outer = sj_progress_begin(10);
    sj_progress_step(outer);
    const sj_progress_work inner = sj_progress_begin(3);
    sj_progress_step(inner);
    assert_true(last.part < 0);
    sj_progress_end(inner);
    assert_false(last.has_ended);
    sj_progress_end(outer);
    assert_true(last.has_ended);
}

static void test_a_step_of_a_list_is_divided_by_its_inner_list(void **unused)
{
    (void)unused;
    const sj_progress_work list = sj_progress_begin_list(4);
    sj_progress_step(list);
    assert_part(0.25);
    const sj_progress_work part = sj_progress_begin_list(2);
    sj_progress_step(part);
    assert_part(0.375);
    const sj_progress_work innermost = sj_progress_begin(10);
    sj_progress_reach(innermost, 5);
    assert_part(0.4375);
    sj_progress_end(innermost);
    sj_progress_step(part);
    sj_progress_end(part);
    assert_false(last.has_ended);
    sj_progress_step(list);
    assert_part(0.5);
    sj_progress_end(list);
    assert_true(last.has_ended);
}

static void test_outer_work_may_end_before_inner_work(void **unused)
{
    (void)unused;
    const sj_progress_work first = sj_progress_begin(2);
    const sj_progress_work second = sj_progress_begin(2);
    sj_progress_end(first);
    assert_false(last.has_ended);
    sj_progress_step(second);
    assert_true(last.part < 0);
    sj_progress_end(second);
    assert_true(last.has_ended);
}

static void test_deeply_nested_work_ends(void **unused)
{
    sj_progress_work works[20];
    (void)unused;
    for (int i = 0; i < 20; i++) {
        works[i] = sj_progress_begin_list(2);
        sj_progress_step(works[i]);
    }
    for (int i = 20; i-- > 0;) {
        sj_progress_end(works[i]);
    }
    assert_true(last.has_ended);
}

static void test_progress_without_a_watcher_is_not_shown(void **unused)
{
    (void)unused;
    sj_progress_watch(NULL);
    assert_false(sj_progress_is_watched());
    const sj_progress_work work = sj_progress_begin(1);
    sj_progress_step(work);
    sj_progress_end(work);
    sj_progress_end(work); /* no work is running */
    assert_int_equal(shown, 0);
}

static void *end_work_of_another_thread(void *held)
{
    const sj_progress_work *work = held;
    sj_progress_watch(note);
    const sj_progress_work own = sj_progress_begin(4);
    const uint32_t before = shown;
    sj_progress_step(*work);
    sj_progress_end(*work);
    assert_int_equal(shown, before);
    sj_progress_step(own);
    assert_part(0.25);
    sj_progress_end(own);
    sj_progress_watch(NULL);
    return NULL;
}

/* One thread may begin a statement, and another thread may finalize it. */
static void test_work_that_ends_in_another_thread_is_not_counted_there(void **unused)
{
    pthread_t thread;
    (void)unused;
    sj_progress_work work = sj_progress_begin(2);
    assert_int_equal(pthread_create(&thread, NULL, end_work_of_another_thread, &work), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    sj_progress_watch(note); /* the next command of this thread */
    work = sj_progress_begin(2);
    sj_progress_step(work);
    assert_part(0.5);
    sj_progress_end(work);
    assert_true(last.has_ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parts_are_counted_up_to_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_progress_may_jump_or_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_inner_work_hides_the_total_of_the_outer_work, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_step_of_a_list_is_divided_by_its_inner_list, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_outer_work_may_end_before_inner_work, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_deeply_nested_work_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_progress_without_a_watcher_is_not_shown, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_work_that_ends_in_another_thread_is_not_counted_there,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
