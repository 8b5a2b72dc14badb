/* Tests plans that are made in the cache before a process needs them. */
#include "agent/planner/plan_ahead.h"

#include "tests/support/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void remove_cache(const char *folder)
{
    DIR *directory = opendir(folder);
    char path[512];
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    closedir(directory);
    assert_int_equal(rmdir(folder), 0);
}

static void a_caller_that_waits_finds_the_plan_in_the_cache(void **state)
{
    char folder[] = "/dev/shm/sj-plan-ahead-XXXXXX";
    sj_plan_ahead *ahead = NULL;
    sj_plan plan;
    sj_plan alone;
    (void)state;
    assert_non_null(mkdtemp(folder));
    char path[] = "/proc/self/exe";
    sj_planner_options options = {.module_path = path, .cache_directory = folder, .threads = 2};
    assert_int_equal(sj_plan_ahead_start(&options, &ahead), SJ_OK);
    path[0] = '?'; /* the planner has its own copy of the path */
    options.module_path = "/proc/self/exe";
    assert_true(sj_plan_ahead_is_of(ahead, "/proc/self/exe"));
    assert_true(sj_plan_ahead_wait(ahead, UINT32_MAX));
    assert_true(sj_plan_ahead_wait(ahead, 0)); /* a second wait returns at once */
    assert_int_equal(sj_plan_make(&options, &plan, NULL), SJ_OK);
    assert_true(plan.from_cache);
    options.cache_directory = NULL;
    assert_int_equal(sj_plan_make(&options, &alone, NULL), SJ_OK);
    assert_int_equal(plan.size_bytes, alone.size_bytes);
    assert_memory_equal(plan.header, alone.header, alone.size_bytes);
    sj_plan_free(&alone);
    sj_plan_free(&plan);
    sj_plan_ahead_free(ahead);
    remove_cache(folder);
}

static void a_plan_may_be_freed_without_a_wait(void **state)
{
    char folder[] = "/dev/shm/sj-plan-ahead-XXXXXX";
    sj_plan_ahead *ahead = NULL;
    (void)state;
    assert_non_null(mkdtemp(folder));
    const sj_planner_options options = {.module_path = "/proc/self/exe", .cache_directory = folder};
    assert_int_equal(sj_plan_ahead_start(&options, &ahead), SJ_OK);
    assert_false(sj_plan_ahead_is_of(ahead, "/another/program"));
    sj_plan_ahead_free(ahead); /* waits for the planner's thread */
    remove_cache(folder);
    assert_false(sj_plan_ahead_is_of(NULL, "/proc/self/exe"));
    sj_plan_ahead_free(NULL);
}

static void a_module_that_cannot_be_planned_ends_the_wait(void **state)
{
    sj_plan_ahead *ahead = NULL;
    (void)state;
    const sj_planner_options options = {.module_path = "/no/such/program", .cache_directory = "."};
    assert_int_equal(sj_plan_ahead_start(&options, &ahead), SJ_OK);
    assert_true(sj_plan_ahead_wait(ahead, UINT32_MAX));
    sj_plan_ahead_free(ahead);
    char *long_path = malloc(100000);
    assert_non_null(long_path);
    memset(long_path, 'x', 99999);
    long_path[99999] = '\0';
    const sj_planner_options too_long = {.module_path = long_path, .cache_directory = "."};
    assert_int_equal(sj_plan_ahead_start(&too_long, &ahead), SJ_ELIMIT);
    free(long_path);
}

static bool is_empty(const char *folder)
{
    DIR *directory = opendir(folder);
    bool is_found = false;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        is_found = is_found || entry->d_name[0] != '.';
    }
    closedir(directory);
    return !is_found;
}

/* True if a thread of this process is inside openat. Fails the test if the kernel does not report
 * it. */
static bool is_opening(const char *thread)
{
    char path[512];
    char call[32] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", thread);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file >= 0 ? read(file, call, sizeof(call) - 1) : -1;
    if (got < 0 && errno != ENOENT && errno != ESRCH) { /* otherwise the thread has ended */
        fail_msg("cannot read %s: %s", path, strerror(errno));
    }
    if (file >= 0) {
        close(file);
    }
    return got > 0 && call[0] != 'r' && strtol(call, NULL, 10) == SYS_openat;
}

/* Returns how many threads of this process are inside openat. */
static unsigned count_opening(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.' && is_opening(entry->d_name);
    }
    closedir(tasks);
    return count;
}

/* Fails the test if two threads are not inside openat after a minute. */
static void wait_for_two_openings(void)
{
    enum { TRIES = 60000 };
    for (unsigned i = 0; count_opening() < 2; i++) {
        assert_true(i < TRIES);
        usleep(1000);
    }
}

/* The module is a FIFO, so planning blocks until the FIFO has a writer. */
static void two_plans_run_at_once_and_others_wait_or_are_given_up(void **state)
{
    char folder[] = "/dev/shm/sj-plan-ahead-XXXXXX";
    char fifo[64];
    sj_plan_ahead *slow[2];
    sj_plan_ahead *waiting = NULL;
    sj_plan_ahead *given_up = NULL;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(fifo, sizeof(fifo), "%s.fifo", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const sj_planner_options stuck = {.module_path = fifo, .cache_directory = folder};
    const sj_planner_options options = {.module_path = "/proc/self/exe", .cache_directory = folder};
    assert_int_equal(sj_plan_ahead_start(&stuck, &slow[0]), SJ_OK);
    assert_int_equal(sj_plan_ahead_start(&stuck, &slow[1]), SJ_OK);
    wait_for_two_openings();
    assert_int_equal(sj_plan_ahead_start(&options, &given_up), SJ_OK);
    assert_int_equal(sj_plan_ahead_start(&options, &waiting), SJ_OK);
    sj_plan_ahead_free(given_up);
    assert_true(is_empty(folder));
    const int writer = open(fifo, O_RDWR | O_CLOEXEC);
    assert_true(writer >= 0);
    assert_true(sj_plan_ahead_wait(waiting, UINT32_MAX));
    assert_false(is_empty(folder));
    sj_plan_ahead_free(waiting);
    sj_plan_ahead_free(slow[0]);
    sj_plan_ahead_free(slow[1]);
    close(writer);
    assert_int_equal(unlink(fifo), 0);
    remove_cache(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_that_waits_finds_the_plan_in_the_cache),
        cmocka_unit_test(a_plan_may_be_freed_without_a_wait),
        cmocka_unit_test(a_module_that_cannot_be_planned_ends_the_wait),
        cmocka_unit_test(two_plans_run_at_once_and_others_wait_or_are_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
