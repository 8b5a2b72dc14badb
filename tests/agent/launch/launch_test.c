/* Tests how a program is started that an emulator runs. A script stands for the emulator and
 * reports how it was called. */
#include "agent/launch/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
    char folder[64];
    char emulator[96];
    char told[96];
} fixture;

static int set_up(void **state)
{
    static fixture made;
    snprintf(made.folder, sizeof(made.folder), "/tmp/sj_launch_XXXXXX");
    assert_non_null(mkdtemp(made.folder));
    snprintf(made.emulator, sizeof(made.emulator), "%s/emulator", made.folder);
    snprintf(made.told, sizeof(made.told), "%s/told", made.folder);
    FILE *file = fopen(made.emulator, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\necho \"$G_SLICE:\" \"$@\" > %s\n", made.told);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(made.emulator, 0700), 0);
    *state = &made;
    return 0;
}

static int tear_down(void **state)
{
    const fixture *made = *state;
    (void)unlink(made->told);
    (void)unlink(made->emulator);
    return rmdir(made->folder);
}

static void expect(const fixture *made, const char *wanted)
{
    char *arguments[] = {(char *)(uintptr_t) "shown", (char *)(uintptr_t) "word", NULL};
    const sj_launch_options options = {.path = "/program",
                                       .emulator = made->emulator,
                                       .sysroot = "/root",
                                       .arguments = arguments,
                                       .agent_path = "/agent.so",
                                       .runtime_directory = made->folder};
    sj_launch launch;
    sj_error error = {0};
    int exec_errno;
    char line[256] = "";
    assert_int_equal(sj_launch_prepare(&options, &launch, &error), SJ_OK);
    assert_int_equal(sj_launch_go(&launch, &exec_errno), SJ_OK);
    assert_int_equal(waitpid(launch.pid, NULL, 0), launch.pid);
    FILE *file = fopen(made->told, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    assert_string_equal(line, wanted);
}

/* A child that was forked while another thread held a lock of GLib's slices would hang. */
static void emulators_run_with_an_allocator_that_a_fork_cannot_lock(void **state)
{
    unsetenv("LD_PRELOAD");
    unsetenv("G_SLICE");
    expect(*state, "always-malloc: -L /root -U G_SLICE -E LD_PRELOAD=/agent.so -0 shown /program "
                   "word\n");
}

static void a_users_g_slice_setting_is_kept(void **state)
{
    setenv("G_SLICE", "all", 1);
    expect(*state, "all: -L /root -E LD_PRELOAD=/agent.so -0 shown /program word\n");
    unsetenv("G_SLICE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(emulators_run_with_an_allocator_that_a_fork_cannot_lock,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_users_g_slice_setting_is_kept, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
