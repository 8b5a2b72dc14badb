/* Stacks of a thread that makes another one: they can be unwound although the tables of the C
 * library's function end at its system call. */
#include "agent/ptrace/unwinder.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAPACITY = 64, STACK_BYTES = 64 * 1024 };

static void *do_nothing(void *nothing)
{
    return nothing;
}

__attribute__((noinline)) static int make_a_thread(void)
{
    pthread_t thread;
    const int failed = pthread_create(&thread, NULL, do_nothing, NULL);
    return failed != 0 ? failed : pthread_join(thread, NULL);
}

/* Starts a child that makes a thread when it reads a byte, and traces what the child makes. */
static pid_t start_child(int *begin)
{
    int ends[2];
    char byte = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        _exit(read(ends[0], &byte, 1) == 1 && make_a_thread() == 0 ? 0 : 1);
    }
    close(ends[0]);
    *begin = ends[1];
    assert_int_equal(
        ptrace(PTRACE_SEIZE, child, NULL, (void *)(PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD)),
        0);
    return child;
}

static bool walk_finds(pid_t child, const char *name)
{
    sj_tracee target;
    sj_unwinder *unwinder = NULL;
    sj_stack_copy copy;
    sj_native_frame frames[CAPACITY];
    bool is_found = false;
    assert_int_equal(sj_tracee_open(child, &target, NULL), SJ_OK);
    assert_int_equal(sj_unwinder_new(&target, &unwinder), SJ_OK);
    assert_int_equal(sj_stack_copy_read(&target, child, STACK_BYTES, &copy), SJ_OK);
    const size_t count = sj_unwinder_walk(unwinder, &copy, frames, CAPACITY);
    for (size_t i = 0; i < count; i++) {
        const char *found =
            sj_unwinder_name(unwinder, frames[i].pc - (frames[i].is_activation ? 0 : 1));
        is_found |= found != NULL && strcmp(found, name) == 0;
    }
    sj_stack_copy_deinit(&copy);
    sj_unwinder_free(unwinder);
    sj_tracee_close(&target);
    return is_found;
}

/* Waits until the child stops for the event, and lets it pass all others. */
static void wait_for_stop(pid_t child, int event)
{
    int status = 0;
    do {
        assert_int_equal(waitpid(child, &status, __WALL), child);
        assert_true(WIFSTOPPED(status));
    } while (status >> 8 != event && ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
    assert_int_equal(status >> 8, event);
}

static void a_thread_is_unwound_in_and_after_clone(void **state)
{
    (void)state;
    int begin = -1;
    int status = 0;
    unsigned long made = 0;
    const pid_t child = start_child(&begin);
    assert_int_equal(write(begin, "x", 1), 1);
    wait_for_stop(child, SIGTRAP | PTRACE_EVENT_CLONE << 8);
    assert_int_equal(ptrace(PTRACE_GETEVENTMSG, child, NULL, &made), 0);
    assert_true(walk_finds(child, "make_a_thread"));
    assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
    wait_for_stop(child, SIGTRAP | 0x80);
    assert_true(walk_finds(child, "make_a_thread"));
    assert_int_equal(waitpid((pid_t)made, &status, __WALL), (pid_t)made);
    assert_int_equal(ptrace(PTRACE_DETACH, (pid_t)made, NULL, NULL), 0);
    assert_int_equal(ptrace(PTRACE_DETACH, child, NULL, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(begin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_thread_is_unwound_in_and_after_clone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
