/* A call that is made in a thread while all others are stopped, and needs a lock that one of them
 * holds. */
#include "agent/control/attach_parts.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ALONE_MS = 5, SHORT_MS = 300, LONG_MS = 20000 };

/* Shared by the test and the child. */
typedef struct scene {
    atomic_bool is_locked;
    atomic_bool may_unlock;
    atomic_bool is_called;
} scene;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static scene *shared;
static bool stops;

static void *hold_lock(void *argument)
{
    pthread_mutex_lock(&lock);
    atomic_store(&shared->is_locked, true);
    while (!atomic_load(&shared->may_unlock)) {
        sched_yield();
    }
    pthread_mutex_unlock(&lock);
    return argument;
}

/* What the child's first thread is made to call. */
static void take_lock(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&shared->is_called, true);
    pthread_mutex_unlock(&lock);
}

static pid_t start_child(void)
{
    *shared = (scene){0};
    const pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, hold_lock, NULL);
        for (;;) {
            pause();
        }
    }
    assert_true(child > 0);
    while (!atomic_load(&shared->is_locked)) {
        sched_yield();
    }
    return child;
}

static sj_status call(int alone_ms, int timeout_ms, size_t *stopped, bool *is_called)
{
    sj_target target;
    size_t thread = 0;
    const pid_t child = start_child();
    assert_int_equal(sj_target_open(child, &target, NULL), SJ_OK);
    assert_int_equal(sj_target_stop_all(&target, NULL), SJ_OK);
    assert_int_equal(target.count, 2);
    assert_int_equal(sj_target_stop_one(&target, child, &thread), SJ_OK);
    atomic_store(&shared->may_unlock, true);
    const sj_remote_call wanted = {.function = (uint64_t)(uintptr_t)take_lock,
                                   .restorer = sj_attach_find_restorer(&target),
                                   .alone_ms = alone_ms};
    if (stops) {
        assert_int_equal(syscall(SYS_tgkill, child, child, SIGSTOP), 0);
    }
    const sj_status status = sj_machine_call(&target, thread, &wanted, timeout_ms);
    *stopped = target.count;
    *is_called = atomic_load(&shared->is_called);
    sj_target_close(&target);
    if (stops) {
        int how = 0;
        assert_int_equal(waitpid(child, &how, WUNTRACED), child);
        assert_true(WIFSTOPPED(how) && WSTOPSIG(how) == SIGSTOP);
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return status;
}

static void test_others_run_on_when_the_call_waits_for_one_of_them(void **state)
{
    size_t stopped = 0;
    bool is_called = false;
    (void)state;
    assert_int_equal(call(ALONE_MS, LONG_MS, &stopped, &is_called), SJ_OK);
    assert_int_equal(stopped, 1);
    assert_true(is_called);
}

static void test_others_stay_stopped_unless_that_is_asked_for(void **state)
{
    size_t stopped = 0;
    bool is_called = false;
    (void)state;
    assert_int_equal(call(0, SHORT_MS, &stopped, &is_called), SJ_ETIMEDOUT);
    assert_int_equal(stopped, 2);
    assert_false(is_called);
}

/* A thread in such a call has all signals held back but this one. */
static void test_a_process_that_is_told_to_stop_meanwhile_stops(void **state)
{
    size_t stopped = 0;
    bool is_called = false;
    (void)state;
    stops = true;
    assert_int_equal(call(ALONE_MS, LONG_MS, &stopped, &is_called), SJ_OK);
    stops = false;
    assert_true(is_called);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_run_on_when_the_call_waits_for_one_of_them),
        cmocka_unit_test(test_others_stay_stopped_unless_that_is_asked_for),
        cmocka_unit_test(test_a_process_that_is_told_to_stop_meanwhile_stops),
    };
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
