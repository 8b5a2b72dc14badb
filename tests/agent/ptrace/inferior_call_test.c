/* Tests a call that a tracer makes in one thread of a stopped process. The call needs a lock that
 * another thread holds. */
#include "agent/ptrace/safepoint.h"
#include "agent/ptrace/tracee_modules.h"

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

enum { ALONE_MS = 5, SHORT_MS = 300, LONG_MS = 120000, STOP_MS = 120000 };

/* Shared by the test and the child. */
typedef struct scene {
    atomic_bool is_locked;
    atomic_bool may_unlock;
    atomic_bool is_called;
} scene;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool yielding_lock; /* waiting threads make system calls, as with tcmalloc's locks */
static scene *shared;

static void *hold_lock(void *argument)
{
    pthread_mutex_lock(&lock);
    atomic_store(&yielding_lock, true);
    atomic_store(&shared->is_locked, true);
    while (!atomic_load(&shared->may_unlock)) {
        sched_yield();
    }
    atomic_store(&yielding_lock, false);
    pthread_mutex_unlock(&lock);
    return argument;
}

/* The function that the tracer calls in the child's first thread. */
static void lock_and_release(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&shared->is_called, true);
    pthread_mutex_unlock(&lock);
}

static void lock_yielding(void)
{
    while (atomic_exchange(&yielding_lock, true)) {
        sched_yield();
    }
    atomic_store(&shared->is_called, true);
    atomic_store(&yielding_lock, false);
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

typedef struct outcome {
    sj_status status;
    size_t stopped; /* number of stopped threads after the call */
    bool is_called;
    bool is_stopped; /* true if SIGSTOP has stopped the process */
    uint32_t frames; /* words below the thread's stack that look like a handler's return address */
} outcome;

static uint32_t count_below_stack(const sj_tracee *target, pid_t tid, uint64_t wanted)
{
    static uint64_t words[4096];
    sj_stack_copy copy;
    uint32_t count = 0;
    assert_int_equal(sj_stack_copy_read(target, tid, sizeof(uint64_t), &copy), SJ_OK);
    const uint64_t sp = copy.state.sp & ~UINT64_C(7);
    sj_stack_copy_deinit(&copy);
    assert_int_equal(sj_tracee_read(target, sp - sizeof(words), words, sizeof(words)), SJ_OK);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const sj_signal_returns returns = {.of_library = wanted};
        /* Where calls push no return address, a frame is recognised by its content. */
        count += SJ_MACHINE_CALL_PUSHES ? words[i] == wanted
                                        : sj_signal_is_frame(&returns, (const uint8_t *)&words[i],
                                                             sizeof(words) - i * sizeof(words[0]));
    }
    return count;
}

static bool is_stopped(pid_t child)
{
    int how = 0;
    for (int i = 0; i < STOP_MS && waitpid(child, &how, WUNTRACED | WNOHANG) != child; i++) {
        usleep(1000);
    }
    return WIFSTOPPED(how) && WSTOPSIG(how) == SIGSTOP;
}

/* Makes a child's first thread call a function. Sends `signal` to that thread before the call; 0:
 * no signal. */
static outcome call_function(void (*function)(void), int alone_ms, int timeout_ms, int signal)
{
    sj_tracee target;
    size_t thread = 0;
    outcome told = {0};
    const pid_t child = start_child();
    assert_int_equal(sj_tracee_open(child, &target, NULL), SJ_OK);
    assert_int_equal(sj_tracee_stop_all(&target, NULL), SJ_OK);
    assert_int_equal(target.count, 2);
    assert_int_equal(sj_tracee_stop_one(&target, child, &thread), SJ_OK);
    atomic_store(&shared->may_unlock, true);
    const sj_inferior_call wanted = {.function = (uint64_t)(uintptr_t)function,
                                     .restorer = sj_remote_restorer_find(&target),
                                     .alone_ms = alone_ms};
    assert_int_equal(syscall(SYS_tgkill, child, child, signal), 0);
    told.status = sj_inferior_call_run(&target, thread, &wanted, timeout_ms);
    told.stopped = target.count;
    told.is_called = atomic_load(&shared->is_called);
    told.frames = told.is_called ? count_below_stack(&target, child, wanted.restorer) : 0;
    sj_tracee_close(&target);
    told.is_stopped = signal != 0 && is_stopped(child);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return told;
}

static outcome call(int alone_ms, int timeout_ms, int signal)
{
    return call_function(lock_and_release, alone_ms, timeout_ms, signal);
}

static void test_threads_are_resumed_if_the_call_waits_for_one(void **state)
{
    const outcome told = call(ALONE_MS, LONG_MS, 0);
    (void)state;
    assert_int_equal(told.status, SJ_OK);
    assert_int_equal(told.stopped, 1);
    assert_true(told.is_called);
    assert_int_equal(told.frames, 0);
}

static void test_threads_stay_stopped_unless_resuming_is_asked_for(void **state)
{
    const outcome told = call(0, SHORT_MS, 0);
    (void)state;
    assert_int_equal(told.status, SJ_ETIMEDOUT);
    assert_int_equal(told.stopped, 2);
    assert_false(told.is_called);
}

static void test_threads_are_resumed_if_the_call_waits_with_system_calls(void **state)
{
    const outcome told = call_function(lock_yielding, ALONE_MS, LONG_MS, 0);
    (void)state;
    assert_int_equal(told.status, SJ_OK);
    assert_int_equal(told.stopped, 1);
    assert_true(told.is_called);
}

static void test_a_call_that_waits_with_system_calls_ends_in_time(void **state)
{
    const outcome told = call_function(lock_yielding, 0, SHORT_MS, 0);
    (void)state;
    assert_int_equal(told.status, SJ_ETIMEDOUT);
    assert_int_equal(told.stopped, 2);
    assert_false(told.is_called);
}

/* During such a call, all signals of the thread are held back except SIGSTOP. */
static void test_a_process_that_is_reported_to_stop_meanwhile_stops(void **state)
{
    const outcome told = call(ALONE_MS, LONG_MS, SIGSTOP);
    (void)state;
    assert_int_equal(told.status, SJ_OK);
    assert_true(told.is_called && told.is_stopped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_are_resumed_if_the_call_waits_for_one),
        cmocka_unit_test(test_threads_stay_stopped_unless_resuming_is_asked_for),
        cmocka_unit_test(test_threads_are_resumed_if_the_call_waits_with_system_calls),
        cmocka_unit_test(test_a_call_that_waits_with_system_calls_ends_in_time),
        cmocka_unit_test(test_a_process_that_is_reported_to_stop_meanwhile_stops),
    };
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
