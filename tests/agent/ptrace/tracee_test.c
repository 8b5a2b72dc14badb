/* Stops of single threads: waits that the kernel does not restart continue, and a child keeps its
 * exit status for the code that started it. */
#include "agent/ptrace/arch.h"
#include "agent/ptrace/proc_status.h"
#include "agent/ptrace/waits.h"
#include "tests/support/check.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_READY = 7, EXIT_INTERRUPTED = 8, EXIT_FAILED = 9 };

static void ignore_signal(int signal)
{
    (void)signal;
}

/* Starts a child that waits for `event` with epoll_wait, and exits with what it returned. */
static pid_t start_waiting(int event)
{
    const pid_t child = fork();
    if (child == 0) {
        struct epoll_event wanted = {.events = EPOLLIN};
        const int set = epoll_create1(0);
        signal(SIGUSR1, ignore_signal);
        if (epoll_ctl(set, EPOLL_CTL_ADD, event, &wanted) != 0) {
            _exit(EXIT_FAILED);
        }
        const int got = epoll_wait(set, &wanted, 1, -1);
        _exit(got == 1 ? EXIT_READY : errno == EINTR ? EXIT_INTERRUPTED : EXIT_FAILED);
    }
    return child;
}

static void stop_in_wait(pid_t child, sj_tracee *target)
{
    sj_registers state = {0};
    size_t thread = 0;
    assert_int_equal(sj_tracee_open(child, target, NULL), SJ_OK);
    while (sj_tracee_is_there(target)) {
        sj_proc_thread facts;
        assert_int_equal(sj_proc_thread_read(child, child, &facts), SJ_OK);
        if (facts.state == 'S') {
            break;
        }
    }
    assert_int_equal(sj_tracee_stop_one(target, child, &thread), SJ_OK);
    assert_int_equal(sj_registers_get(child, &state), SJ_OK);
    assert_true(state.in_syscall);
}

static int finish(pid_t child, int event, sj_tracee *target)
{
    const uint64_t one = 1;
    int status = 0;
    sj_tracee_resume_all(target);
    sj_tracee_close(target);
    assert_int_equal(write(event, &one, sizeof(one)), sizeof(one));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    close(event);
    return WEXITSTATUS(status);
}

static void a_wait_continues_after_a_stop(void **state)
{
    (void)state;
    sj_tracee target;
    const int event = eventfd(0, 0);
    const pid_t child = start_waiting(event);
    stop_in_wait(child, &target);
    const int result = finish(child, event, &target);
    assert_true(result == EXIT_READY || !sj_waits_are_repeatable());
}

/* The signal arrives after the thread was set to wait again, before it runs. */
static void a_signal_ends_a_wait(void **state)
{
    (void)state;
    sj_tracee target;
    const int event = eventfd(0, 0);
    const pid_t child = start_waiting(event);
    stop_in_wait(child, &target);
    assert_int_equal(kill(child, SIGUSR1), 0);
    assert_int_equal(finish(child, event, &target), EXIT_INTERRUPTED);
}

/* Starts a child that receives from a socket with a time limit, and exits with what it returned. */
static pid_t start_receiving(int socket)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct timeval limit = {.tv_sec = 3600};
        uint64_t got;
        if (setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0) {
            _exit(EXIT_FAILED);
        }
        const ssize_t bytes = recv(socket, &got, sizeof(got), 0);
        _exit(bytes > 0 ? EXIT_READY : errno == EINTR ? EXIT_INTERRUPTED : EXIT_FAILED);
    }
    return child;
}

static void a_timed_receive_goes_on_after_a_stop(void **state)
{
    (void)state;
    sj_tracee target;
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    const pid_t child = start_receiving(sockets[0]);
    stop_in_wait(child, &target);
    const int result = finish(child, sockets[1], &target);
    assert_true(result == EXIT_READY || !sj_waits_are_repeatable());
    close(sockets[0]);
}

static void a_child_keeps_its_exit_status(void **state)
{
    (void)state;
    sj_tracee target;
    int status = 0;
    const int event = eventfd(0, 0);
    const pid_t child = start_waiting(event);
    stop_in_wait(child, &target);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(sj_tracee_wait(&target, 0, 60000, &status), SJ_ECLOSED);
    sj_tracee_close(&target);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(event);
}

static void a_killed_process_is_ending(void **state)
{
    (void)state;
    siginfo_t info;
    const int event = eventfd(0, 0);
    const pid_t child = start_waiting(event);
    assert_false(sj_proc_is_ending(child));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(sj_proc_is_ending(child));
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(sj_proc_is_ending(child));
    close(event);
}

/* Starts a child that waits in the kernel, where no stop reaches it, until `gate` has a byte: it
 * has called vfork. */
static pid_t start_unstoppable(int gate)
{
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        const pid_t inner = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
        if (inner == 0) {
            (void)!read(gate, &byte, 1); /* NOLINT(clang-analyzer-unix.Vfork) */
            _exit(0);
        }
        _exit(inner > 0 ? EXIT_READY : EXIT_FAILED);
    }
    return child;
}

static void *trace_unstoppable(void *argument)
{
    const pid_t child = *(const pid_t *)argument;
    sj_proc_thread facts = {.state = 'R'};
    sj_tracee target;
    size_t thread = 0;
    while (facts.state != 'D') {
        assert_int_equal(sj_proc_thread_read(child, child, &facts), SJ_OK);
    }
    assert_int_equal(sj_tracee_open(child, &target, NULL), SJ_OK);
    target.stop_timeout_ms = 1;
    assert_int_equal(sj_tracee_stop_one(&target, child, &thread), SJ_ETIMEDOUT);
    assert_false(target.is_left_traced);
    sj_tracee_close(&target);
    assert_true(target.is_left_traced);
    return NULL;
}

/* The end of the tracing thread frees a thread that did not stop. */
static void a_thread_that_does_not_stop_runs_on(void **state)
{
    (void)state;
    pthread_t tracer;
    int gate[2];
    int status = 0;
    assert_int_equal(pipe(gate), 0);
    pid_t child = start_unstoppable(gate[0]);
    assert_int_equal(pthread_create(&tracer, NULL, trace_unstoppable, &child), 0);
    assert_int_equal(pthread_join(tracer, NULL), 0);
    assert_int_equal(write(gate[1], "", 1), 1);
    do {
        assert_int_equal(waitpid(child, &status, 0), child);
    } while (WIFSTOPPED(status)); /* The kernel ends the tracing somewhat later than the thread. */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_READY);
    close(gate[0]);
    close(gate[1]);
}

/* A thread that did not stop in time stops later. The thread that traces it may live on. */
static void a_late_stop_is_ended(void **state)
{
    (void)state;
    int gate[2];
    int status = 0;
    sj_proc_thread facts = {.state = 'D'};
    assert_int_equal(pipe(gate), 0);
    pid_t child = start_unstoppable(gate[0]);
    (void)trace_unstoppable(&child);
    sj_tracee_free_left();
    assert_int_equal(write(gate[1], "", 1), 1);
    while (facts.state != 'Z') {
        sj_tracee_free_left();
        assert_int_equal(sj_proc_thread_read(child, child, &facts), SJ_OK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_READY);
    close(gate[0]);
    close(gate[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_continues_after_a_stop),
        cmocka_unit_test(a_signal_ends_a_wait),
        cmocka_unit_test(a_timed_receive_goes_on_after_a_stop),
        cmocka_unit_test(a_child_keeps_its_exit_status),
        cmocka_unit_test(a_killed_process_is_ending),
        cmocka_unit_test(a_thread_that_does_not_stop_runs_on),
        cmocka_unit_test(a_late_stop_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
