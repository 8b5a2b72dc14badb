/* A child that was forked while another thread was in the loader is known by its locks. */
#include "agent/control/loader_lock.h"

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

/* Runs with a lock of the loader held. */
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
    sj_target target;
    assert_int_equal(sj_target_open(child, &target, NULL), SJ_OK);
    const bool answer = sj_loader_lock_is_orphaned(&target);
    sj_target_close(&target);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return answer;
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
    pthread_barrier_wait(&done); /* looking for the locks takes one of them here */
    pthread_join(thread, NULL);
    assert_true(is_orphaned(child));
    assert_false(is_orphaned(fork_child()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lock_whose_owner_is_not_in_the_child_is_orphaned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
