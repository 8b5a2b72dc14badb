#include "agent/daemon/worker.h"

#include "agent/daemon/json_memory.h"
#include "agent/host/own_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 };

extern char **environ;

/* Starts this program again as a worker, with default signal handlers. */
static int spawn_worker(sj_own_program *program, pid_t *pid, int input, int output)
{
    static char name[] = "sojourn-device";
    static char command[] = "session";
    char *arguments[SJ_OWN_ARGUMENTS + 1];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    sj_own_program_arguments(program, name, command, arguments);
    posix_spawn_file_actions_init(&files);
    int result = posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    if (result == 0) {
        result = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    }
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    if (result == 0) {
        result = posix_spawn(pid, "/proc/self/exe", &files, &attributes, arguments, environ);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return result;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static sj_status read_line(int file, int timeout_ms, char *line, sj_error *error)
{
    size_t used = 0;
    const int64_t deadline = now_ms() + timeout_ms;
    while (used + 1 < LINE_BYTES) {
        struct pollfd polled = {.fd = file, .events = POLLIN};
        const int64_t left = deadline - now_ms();
        if (left <= 0 || poll(&polled, 1, (int)left) == 0) {
            return sj_fail(error, SJ_ETIMEDOUT,
                           "the recording did not begin within %d ms and was cancelled; does a "
                           "step of the preparation take longer?",
                           timeout_ms);
        }
        const ssize_t got = read(file, line + used, LINE_BYTES - 1 - used);
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
        if (memchr(line, '\n', used) != NULL) {
            break;
        }
    }
    line[used] = '\0';
    return used != 0 ? SJ_OK : sj_fail(error, SJ_EIO, "the recorder ended before it could start");
}

static sj_status converse(const json_t *task, int to, int from, int timeout_ms, json_t **session,
                          sj_error *error)
{
    char line[LINE_BYTES];
    json_error_t unused;
    const int result = json_dumpfd(task, to, JSON_COMPACT);
    close(to);
    if (result != 0) {
        return sj_fail(error, SJ_EIO, "the recorder does not accept its command");
    }
    SJ_TRY(read_line(from, timeout_ms, line, error));
    json_t *reply = sj_json_parse(line, &unused);
    const char *problem = json_string_value(json_object_get(reply, "error"));
    if (problem != NULL ||
        (json_object_get(reply, "session") == NULL && json_object_get(reply, "runtime") == NULL)) {
        sj_fail(error, SJ_EINVAL, "%s",
                problem != NULL
                    ? problem
                    : "the recorder's answer is not understood, or there is no memory for it");
        json_decref(reply);
        return SJ_EINVAL;
    }
    *session = reply;
    return SJ_OK;
}

sj_status sj_worker_start(const json_t *task, int timeout_ms, json_t **session, sj_error *error)
{
    int to[2];
    int from[2];
    pid_t pid = 0;
    sj_own_program program;
    SJ_TRY(sj_own_program_find(&program, error));
    if (pipe2(to, O_CLOEXEC) != 0) {
        return sj_fail(error, SJ_EIO, "cannot make a pipe: %s", strerror(errno));
    }
    if (pipe2(from, O_CLOEXEC) != 0) {
        close(to[0]);
        close(to[1]);
        return sj_fail(error, SJ_EIO, "cannot make a pipe: %s", strerror(errno));
    }
    const int result = spawn_worker(&program, &pid, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    sj_status status = SJ_OK;
    if (result != 0) {
        close(to[1]);
        status = sj_fail(error, SJ_EIO, "cannot start a recorder: %s", strerror(result));
    } else {
        status = converse(task, to[1], from[0], timeout_ms, session, error);
    }
    close(from[0]);
    if (status == SJ_ETIMEDOUT) {
        /* Ends the worker's process group, with a preparation step if one runs. The worker leads a
         * session of its own. */
        kill(-pid, SIGTERM);
    }
    return status;
}
