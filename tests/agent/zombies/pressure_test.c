/* Tests that a shortage of memory is detected, with files in the format of the kernel. */
#include "agent/zombies/pressure.h"
#include "agent/zombies/zombie_report.h"

#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PID = 77 };

static char root[64];
static uint32_t unseen;

static bool is_high(void)
{
    return sj_pressure_is_high(root, PID, &unseen);
}

static void write_file(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *slash = full + 1; *slash != '\0'; slash++) {
        if (*slash == '/') {
            *slash = '\0';
            (void)mkdir(full, 0700);
            *slash = '/';
        }
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/pressure-test-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command);
}

static void nothing_known_is_no_pressure(void **state)
{
    (void)state;
    assert_false(is_high());
    assert_int_equal(unseen, SJ_PRESSURE_NO_WAITING | SJ_PRESSURE_NO_MACHINE);
    write_file("/proc/77/cgroup", "4:memory:/a\n"); /* only version 1 of cgroups */
    assert_false(is_high());
    assert_int_equal(unseen,
                     SJ_PRESSURE_NO_WAITING | SJ_PRESSURE_NO_MACHINE | SJ_PRESSURE_NO_GROUP);
    write_file("/proc/meminfo", "MemTotal: many\n");
    write_file("/proc/pressure/memory", "none\n");
    write_file("/proc/77/cgroup", "0::/a\n");
    write_file("/sys/fs/cgroup/a/memory.max", "max\n");
    assert_false(is_high());
    assert_int_equal(unseen, SJ_PRESSURE_NO_WAITING | SJ_PRESSURE_NO_MACHINE);
}

static void a_full_machine_is_pressure(void **state)
{
    (void)state;
    write_file("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable: 50 kB\n");
    assert_false(is_high());
    write_file("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable: 49 kB\n");
    assert_true(is_high());
}

/* Makes a link to itself, which no user can open, not even root. */
static void forbid(const char *path)
{
    char full[256];
    snprintf(full, sizeof(full), "%s%s", root, path);
    (void)unlink(full);
    assert_int_equal(symlink(full, full), 0);
}

static void unreadable_files_are_reported_and_the_others_decide(void **state)
{
    (void)state;
    write_file("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
    write_file("/proc/77/cgroup", "0::/a\n");
    write_file("/sys/fs/cgroup/a/memory.max", "max\n");
    write_file("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable: 900 kB\n");
    assert_false(is_high());
    assert_int_equal(unseen, 0);
    forbid("/proc/pressure/memory");
    forbid("/sys/fs/cgroup/a/memory.max");
    assert_false(is_high());
    assert_int_equal(unseen, SJ_PRESSURE_NO_WAITING | SJ_PRESSURE_NO_GROUP);
    write_file("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable: 49 kB\n");
    assert_true(is_high());
    assert_int_equal(unseen, SJ_PRESSURE_NO_WAITING | SJ_PRESSURE_NO_GROUP);
}

static void waiting_tasks_are_pressure(void **state)
{
    (void)state;
    write_file("/proc/pressure/memory", "some avg10=9.99 avg60=50.00 avg300=0.00 total=1\n");
    assert_false(is_high());
    write_file("/proc/pressure/memory", "some avg10=10.00 avg60=0.00 avg300=0.00 total=1\n");
    assert_true(is_high());
}

static void a_full_control_group_is_pressure(void **state)
{
    (void)state;
    write_file("/proc/77/cgroup", "1:cpu:/other\n0::/a/b\n");
    write_file("/sys/fs/cgroup/a/b/memory.max", "1000\n");
    write_file("/sys/fs/cgroup/a/b/memory.current", "900\n");
    assert_false(is_high());
    write_file("/sys/fs/cgroup/a/b/memory.current", "901\n");
    assert_true(is_high());
}

static void a_process_at_its_limits_is_pressure(void **state)
{
    (void)state;
    write_file("/proc/77/limits", "Limit                     Soft Limit           Hard Limit\n"
                                  "Max data size             unlimited            unlimited\n"
                                  "Max address space         1024000              unlimited\n");
    write_file("/proc/77/status", "Name: a\nVmSize:   900 kB\nVmData:   800 kB\n");
    assert_false(is_high());
    write_file("/proc/77/status", "Name: a\nVmSize:   901 kB\nVmData:   800 kB\n");
    assert_true(is_high());
    write_file("/proc/77/limits", "Max data size             880000               unlimited\n"
                                  "Max address space         unlimited            unlimited\n");
    assert_true(is_high());
    write_file("/proc/77/status", "Name: a\nVmSize:   9000 kB\nVmData:   700 kB\n");
    assert_false(is_high());
}

/* The result is the least of what the machine, the group and the process have left. */
static void free_memory_is_the_least_of_all_limits(void **state)
{
    (void)state;
    assert_true(sj_pressure_free_bytes(root, PID) == UINT64_MAX);
    write_file("/proc/meminfo", "MemTotal:  9000 kB\nMemAvailable: 800 kB\nCommitLimit: 600 kB\n"
                                "Committed_AS: 100 kB\n");
    assert_int_equal(sj_pressure_free_bytes(root, PID), 800 * 1024);
    write_file("/proc/sys/vm/overcommit_memory", "0\n");
    assert_int_equal(sj_pressure_free_bytes(root, PID), 800 * 1024);
    write_file("/proc/sys/vm/overcommit_memory", "2\n");
    assert_int_equal(sj_pressure_free_bytes(root, PID), 500 * 1024);
    write_file("/proc/77/cgroup", "0::/a\n");
    write_file("/sys/fs/cgroup/a/memory.max", "500000\n");
    write_file("/sys/fs/cgroup/a/memory.current", "100000\n");
    assert_int_equal(sj_pressure_free_bytes(root, PID), 400000);
    write_file("/proc/77/limits", "Max data size             unlimited            unlimited\n"
                                  "Max address space         1024000              unlimited\n");
    write_file("/proc/77/status", "Name: a\nVmSize:   900 kB\nVmData:   800 kB\n");
    assert_int_equal(sj_pressure_free_bytes(root, PID), 1024000 - 900 * 1024);
    write_file("/proc/77/status", "Name: a\nVmSize:   1001 kB\nVmData:   800 kB\n");
    assert_int_equal(sj_pressure_free_bytes(root, PID), 0);
}

static void the_account_names_unreadable_files(void **state)
{
    (void)state;
    sj_zombie_region *region = calloc(1, sizeof(*region));
    assert_non_null(region);
    sj_zombie_limits limits = {.pressure_unseen = SJ_PRESSURE_NO_WAITING | SJ_PRESSURE_NO_GROUP};
    char *account = sj_zombie_account_json(region, SJ_ZOMBIE_MONITORED, &limits);
    assert_non_null(
        strstr(account, "\"pressure_unseen\":\"/proc/pressure/memory, control group\""));
    free(account);
    limits.pressure_unseen = 0;
    account = sj_zombie_account_json(region, SJ_ZOMBIE_MONITORED, &limits);
    assert_non_null(strstr(account, "\"pressure_unseen\":\"\""));
    free(account);
    free(region);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_known_is_no_pressure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_machine_is_pressure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unreadable_files_are_reported_and_the_others_decide, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_process_at_its_limits_is_pressure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(free_memory_is_the_least_of_all_limits, set_up, tear_down),
        cmocka_unit_test(the_account_names_unreadable_files),
        cmocka_unit_test_setup_teardown(waiting_tasks_are_pressure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_control_group_is_pressure, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
