#include "collector-server/http/import_progress.h"
#include "proto/base/progress.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void *ask_elsewhere(void *part)
{
    *(double *)part = sj_import_progress_of("first");
    return NULL;
}

static double asked_in_another_thread(void)
{
    pthread_t thread;
    double part = -2;
    assert_int_equal(pthread_create(&thread, NULL, ask_elsewhere, &part), 0);
    pthread_join(thread, NULL);
    return part;
}

static void other_threads_see_the_progress_of_a_copy(void **state)
{
    (void)state;
    assert_true(asked_in_another_thread() < 0);
    sj_import_progress_watch("first");
    const sj_progress_work sessions = sj_progress_begin_list(2);
    assert_true(asked_in_another_thread() == 0);
    const sj_progress_work blocks = sj_progress_begin(4);
    sj_progress_step(blocks);
    assert_true(asked_in_another_thread() == 0.125);
    sj_progress_end(blocks);
    sj_progress_step(sessions);
    assert_true(asked_in_another_thread() == 0.5);
    sj_progress_end(sessions);
    assert_true(asked_in_another_thread() == 1);
    sj_import_progress_leave();
    assert_true(asked_in_another_thread() < 0);
    assert_false(sj_progress_is_watched());
}

static void copies_beyond_the_slots_show_no_progress(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) { /* each takes a slot until none is free */
        sj_import_progress_watch("many");
    }
    sj_import_progress_watch("last");
    sj_progress_end(sj_progress_begin(1));
    assert_true(sj_import_progress_of("last") < 0);
    assert_true(sj_import_progress_of("") < 0);
    sj_import_progress_leave();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_threads_see_the_progress_of_a_copy),
        cmocka_unit_test(copies_beyond_the_slots_show_no_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
