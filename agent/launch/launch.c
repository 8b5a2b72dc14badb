#include "agent/launch/launch.h"

#include "agent/abi/link.h"
#include "agent/host/file_limit.h"
#include "agent/host/own_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_FAILED = 125 };

/* Sets LD_PRELOAD for the program. With an emulator, sets `*assignment` instead: the emulator
 * passes it to the program and does not load the agent itself. */
static int set_preload(const sj_launch_options *options, const char *value, char **assignment)
{
    if (options->emulator == NULL) {
        return setenv("LD_PRELOAD", value, 1);
    }
    return asprintf(assignment, "LD_PRELOAD=%s", value) < 0 ? -1 : 0;
}

/* Adds the agent to the environment. The agent removes its additions before main. With an emulator,
 * sets `*assignment` to the variable that the emulator must add. Returns 0, or another number on
 * failure. */
static int set_environment(const sj_launch_options *options, char **assignment)
{
    const char *preload = getenv("LD_PRELOAD");
    char *joined = NULL;
    int failed = setenv(SJ_ENV_RUNTIME, options->runtime_directory, 1);
    if (preload == NULL) {
        failed |= unsetenv(SJ_ENV_PRELOAD);
        return failed | set_preload(options, options->agent_path, assignment);
    }
    failed |= setenv(SJ_ENV_PRELOAD, preload, 1);
    if (asprintf(&joined, "%s:%s", options->agent_path, preload) < 0) {
        return -1;
    }
    failed |= set_preload(options, joined, assignment);
    free(joined);
    return failed;
}

enum { EMULATOR_ARGUMENTS = 10 };

#define SLICES "G_SLICE"

/* Makes the emulator allocate with malloc instead of GLib's slices, which QEMU up to 7.2 uses.
 * Otherwise a child hangs if its parent forked while another thread held a lock of the slices
 * (qemu-project/qemu#285). Returns false if G_SLICE is set already or cannot be set. */
static bool keep_forks_alive(void)
{
    return getenv(SLICES) == NULL && setenv(SLICES, "always-malloc", 1) == 0;
}

/* Executes the emulator. It runs the program under the program's own name, with its own arguments.
 * Returns only on failure. */
static void execute_emulated(const sj_launch_options *options, char *preload)
{
    size_t count = 0;
    size_t used = 0;
    while (options->arguments[count] != NULL) {
        count++;
    }
    char **arguments = calloc(count + EMULATOR_ARGUMENTS + 1, sizeof(*arguments));
    if (arguments == NULL || count == 0) {
        free(arguments);
        return;
    }
    arguments[used++] = (char *)(uintptr_t)options->emulator;
    if (options->sysroot != NULL && options->sysroot[0] != '\0') {
        arguments[used++] = (char *)(uintptr_t) "-L";
        arguments[used++] = (char *)(uintptr_t)options->sysroot;
    }
    if (keep_forks_alive()) { /* QEMU's -U removes the variable for the program */
        arguments[used++] = (char *)(uintptr_t) "-U";
        arguments[used++] = (char *)(uintptr_t)SLICES;
    }
    arguments[used++] = (char *)(uintptr_t) "-E";
    arguments[used++] = preload;
    arguments[used++] = (char *)(uintptr_t) "-0";
    arguments[used++] = options->arguments[0];
    arguments[used++] = (char *)(uintptr_t)options->path;
    for (size_t i = 1; i < count; i++) {
        arguments[used++] = options->arguments[i];
    }
    execv(options->emulator, arguments);
    free(arguments);
}

static void run_child(const sj_launch_options *options, int go, int failed)
{
    char word = 0;
    ssize_t got;
    do {
        got = read(go, &word, 1);
    } while (got < 0 && errno == EINTR);
    if (got != 1) {
        _exit(CHILD_FAILED);
    }
    sj_file_limit_restore();
    sj_own_limits_restore();
    char *preload = NULL;
    if (set_environment(options, &preload) == 0) {
        if (options->emulator != NULL) {
            execute_emulated(options, preload);
        } else {
            execv(options->path, options->arguments);
        }
    }
    const int problem = errno;
    (void)!write(failed, &problem, sizeof(problem));
    _exit(CHILD_FAILED);
}

sj_status sj_launch_prepare(const sj_launch_options *options, sj_launch *launch, sj_error *error)
{
    int go[2];
    int failed[2];
    *launch = (sj_launch){.pid = -1, .go = -1, .failed = -1};
    if (pipe2(go, O_CLOEXEC) != 0) {
        return sj_fail(error, SJ_EIO, "cannot make a pipe: %s", strerror(errno));
    }
    if (pipe2(failed, O_CLOEXEC) != 0) {
        close(go[0]);
        close(go[1]);
        return sj_fail(error, SJ_EIO, "cannot make a pipe: %s", strerror(errno));
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        close(failed[0]);
        run_child(options, go[0], failed[1]);
    }
    close(go[0]);
    close(failed[1]);
    if (pid < 0) {
        close(go[1]);
        close(failed[0]);
        return sj_fail(error, SJ_EIO, "cannot start a process: %s", strerror(errno));
    }
    *launch = (sj_launch){.pid = pid, .go = go[1], .failed = failed[0]};
    return SJ_OK;
}

static void close_pipes(sj_launch *launch)
{
    if (launch->go >= 0) {
        close(launch->go);
        close(launch->failed);
    }
    launch->go = -1;
    launch->failed = -1;
}

sj_status sj_launch_go(sj_launch *launch, int *exec_errno)
{
    const char word = 1;
    ssize_t got;
    *exec_errno = 0;
    (void)!write(launch->go, &word, 1);
    do {
        got = read(launch->failed, exec_errno, sizeof(*exec_errno));
    } while (got < 0 && errno == EINTR);
    close_pipes(launch);
    if (got == 0) {
        return SJ_OK;
    }
    (void)waitpid(launch->pid, NULL, 0);
    launch->pid = -1;
    return SJ_EIO;
}

void sj_launch_abandon(sj_launch *launch)
{
    if (launch->go < 0) {
        return;
    }
    close_pipes(launch);
    (void)waitpid(launch->pid, NULL, 0);
    launch->pid = -1;
}
