/* The loader's locks show that a child was forked while another thread was in the loader. */
#include "agent/ptrace/loader_lock.h"

#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pthread_barrier_t inside;
static pthread_barrier_t done;

/* The loader calls this with one of its locks held. */
static int stay_inside(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)info;
    (void)size;
    (void)context;
    pthread_barrier_wait(&inside);
    pthread_barrier_wait(&done);
    return 1;
}

static void *use_loader(void *argument)
{
    (void)dl_iterate_phdr(stay_inside, NULL);
    return argument;
}

static pid_t fork_child(void)
{
    const pid_t child = fork();
    while (child == 0) {
        pause();
    }
    assert_true(child > 0);
    return child;
}

static bool is_orphaned(pid_t child)
{
    sj_tracee target;
    assert_int_equal(sj_tracee_open(child, &target, NULL), SJ_OK);
    const bool reply = sj_loader_lock_is_orphaned(&target);
    assert_false(sj_loader_lock_is_held(&target, sj_loader_lock_find(&target)));
    sj_tracee_close(&target);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return reply;
}

static void test_a_lock_whose_owner_is_not_in_the_child_is_orphaned(void **state)
{
    pthread_t thread;
    (void)state;
    assert_false(is_orphaned(fork_child()));
    pthread_barrier_init(&inside, NULL, 2);
    pthread_barrier_init(&done, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, use_loader, NULL), 0);
    pthread_barrier_wait(&inside);
    const pid_t child = fork_child();
    pthread_barrier_wait(&done); /* is_orphaned needs one of the locks in this process */
    pthread_join(thread, NULL);
    assert_true(is_orphaned(child));
    assert_false(is_orphaned(fork_child()));
}

static bool is_held(pid_t child)
{
    sj_tracee target;
    assert_int_equal(sj_tracee_open(child, &target, NULL), SJ_OK);
    const uint64_t first = sj_loader_lock_find(&target);
    assert_true(first != 0);
    assert_int_equal(sj_tracee_stop_all(&target, NULL), SJ_OK);
    const bool reply = sj_loader_lock_is_held(&target, first);
    sj_tracee_close(&target);
    return reply;
}

static void test_a_lock_is_held_while_a_thread_goes_over_the_list(void **state)
{
    char byte = 0;
    int pipes[2];
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_barrier_init(&inside, NULL, 2);
        pthread_barrier_init(&done, NULL, 2);
        pthread_create(&thread, NULL, use_loader, NULL);
        pthread_barrier_wait(&inside);
        (void)!write(pipes[1], &byte, 1);
        pause();
    }
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    assert_true(is_held(child));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    const pid_t idle = fork_child();
    assert_false(is_held(idle));
    kill(idle, SIGKILL);
    assert_int_equal(waitpid(idle, NULL, 0), idle);
    close(pipes[0]);
    close(pipes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lock_whose_owner_is_not_in_the_child_is_orphaned),
        cmocka_unit_test(test_a_lock_is_held_while_a_thread_goes_over_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
