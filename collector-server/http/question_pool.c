#include "collector-server/http/question_pool.h"

#include "collector-server/http/question.h"
#include "collector-server/http/question_worker.h"
#include "collector-server/http/request_pool.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WORKERS = SJ_REQUESTS_SLOW_AT_ONCE,
    LOOK_MS = 20,
    /* A process reports by itself that a question takes too long. After this additional time it is
     * ended. */
    GRACE_MS = 2000,
    NUMBER_BYTES = 24,
    RESULT_BYTES_MAX = 64 << 20 /* size of the JSON; question.c limits the values in it */
};

extern char **environ;

const sj_question_limits sj_question_default_limits = {
    .heap_bytes = 256 << 20, .data_bytes = 640 << 20, .file_bytes = 128 << 20};

typedef struct worker {
    pid_t pid; /* 0: not started */
    int pipe;
    bool is_busy;
} worker;

struct sj_question_pool {
    pthread_mutex_t lock;
    char *path;
    sj_question_limits limits;
    worker workers[WORKERS];
};

/* A question while a worker answers it. */
typedef struct asking {
    worker *by;
    int64_t time_ms; /* limit of the question's processor time */
    int64_t end_ms;
    bool (*is_wanted)(void *context);
    void *context;
} asking;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int spawn_program(pid_t *pid, int pipe, char *const *words)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, pipe, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    /* an own process group, so that Ctrl-C only reaches the server */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    const int code = posix_spawn(pid, "/proc/self/exe", &files, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return code;
}

static sj_status start_worker(const sj_question_pool *pool, worker *started, sj_error *error)
{
    int ends[2];
    char numbers[3][NUMBER_BYTES];
    const int64_t limits[3] = {pool->limits.heap_bytes, pool->limits.data_bytes,
                               pool->limits.file_bytes};
    for (size_t i = 0; i < 3; i++) {
        snprintf(numbers[i], NUMBER_BYTES, "%lld", (long long)limits[i]);
    }
    char *const words[] = {(char *)(uintptr_t)SJ_QUESTION_WORKER,
                           pool->path,
                           numbers[0],
                           numbers[1],
                           numbers[2],
                           NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return sj_fail(error, SJ_EIO, "cannot make a socket: %s", strerror(errno));
    }
    const int code = spawn_program(&started->pid, ends[1], words);
    close(ends[1]);
    if (code != 0) {
        close(ends[0]);
        started->pid = 0;
        return sj_fail(error, SJ_EIO, "cannot start a process for questions: %s", strerror(code));
    }
    started->pipe = ends[0];
    return SJ_OK;
}

/* Kills and reaps a worker. Returns its exit status as from waitpid. */
static int end_worker(worker *ended)
{
    int status = 0;
    kill(ended->pid, SIGKILL);
    close(ended->pipe);
    while (waitpid(ended->pid, &status, 0) < 0 && errno == EINTR) {
    }
    ended->pid = 0;
    return status;
}

/* Claims the first idle worker, or returns NULL. The first ones answer most questions, so their
 * caches are useful. */
static worker *claim_worker(sj_question_pool *pool)
{
    worker *taken = NULL;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < WORKERS && taken == NULL; i++) {
        taken = !pool->workers[i].is_busy ? &pool->workers[i] : NULL;
    }
    if (taken != NULL) {
        taken->is_busy = true;
    }
    pthread_mutex_unlock(&pool->lock);
    return taken;
}

static void give_worker(sj_question_pool *pool, worker *given)
{
    pthread_mutex_lock(&pool->lock);
    given->is_busy = false;
    pthread_mutex_unlock(&pool->lock);
}

/* Limits the CPU time of the worker for this question, in addition to what it has already used. If
 * that fails, only GRACE_MS ends a question. */
static void limit_cpu(const asking *asked)
{
    clockid_t clock;
    struct timespec used = {0};
    if (clock_getcpuclockid(asked->by->pid, &clock) == 0 && clock_gettime(clock, &used) == 0) {
        const rlim_t most = (rlim_t)(used.tv_sec + 1 + (asked->time_ms + GRACE_MS) / 1000);
        const struct rlimit limit = {.rlim_cur = most, .rlim_max = RLIM_INFINITY};
        (void)prlimit(asked->by->pid, RLIMIT_CPU, &limit, NULL);
    }
}

/* Waits until the worker's socket is ready for `events`. */
static sj_status wait_for(const asking *asked, short events, sj_error *error)
{
    struct pollfd watched = {.fd = asked->by->pipe, .events = events};
    while (poll(&watched, 1, LOOK_MS) <= 0) {
        if (asked->is_wanted != NULL && !asked->is_wanted(asked->context)) {
            return sj_fail(error, SJ_ECLOSED, "the query was interrupted");
        }
        if (now_ms() > asked->end_ms) {
            return sj_fail(error, SJ_ETIMEDOUT,
                           "the query ran longer than its limit of %lld ms and was ended",
                           (long long)asked->time_ms);
        }
    }
    return SJ_OK;
}

/* Sends or receives exactly `size` bytes. Returns SJ_EIO if the worker has ended, or an error of
 * wait_for. */
static sj_status transfer(const asking *asked, bool is_sent, void *bytes, size_t size,
                          sj_error *error)
{
    for (size_t done = 0; done < size;) {
        char *at = (char *)bytes + done;
        SJ_TRY(wait_for(asked, is_sent ? POLLOUT : POLLIN, error));
        const ssize_t moved =
            is_sent ? send(asked->by->pipe, at, size - done, MSG_NOSIGNAL | MSG_DONTWAIT)
                    : recv(asked->by->pipe, at, size - done, MSG_DONTWAIT);
        if (moved == 0 || (moved < 0 && errno != EAGAIN && errno != EINTR)) {
            return SJ_EIO; /* the worker has ended */
        }
        done += moved > 0 ? (size_t)moved : 0;
    }
    return SJ_OK;
}

/* Sends a question and receives the answer. The caller owns `*result`, which ends with NUL. */
static sj_status converse(const asking *asked, char *question, sj_question_head *head,
                          char **result, sj_error *error)
{
    *head = (sj_question_head){.size = (uint32_t)strlen(question)};
    SJ_TRY(transfer(asked, true, head, sizeof(*head), error));
    SJ_TRY(transfer(asked, true, question, head->size, error));
    SJ_TRY(transfer(asked, false, head, sizeof(*head), error));
    char *text = head->size <= RESULT_BYTES_MAX ? malloc((size_t)head->size + 1) : NULL;
    if (text == NULL) {
        return sj_fail(error, SJ_ELIMIT, "the answer is too large");
    }
    const sj_status status = transfer(asked, false, text, head->size, error);
    if (status != SJ_OK) {
        free(text);
        return status;
    }
    text[head->size] = '\0';
    *result = text;
    return SJ_OK;
}

/* Kills a worker that has not answered, and returns the reason. Starts another worker for the
 * next question, unless the caller no longer wants the answer. */
static sj_status replace_worker(const sj_question_pool *pool, const asking *asked, sj_status status,
                                sj_error *error)
{
    const int ended = end_worker(asked->by);
    sj_error ignored;
    if (status != SJ_ECLOSED) {
        /* if this fails, the next question reports it */
        (void)!start_worker(pool, asked->by, &ignored);
    }
    if (status != SJ_EIO) {
        return status;
    }
    if (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGXCPU) {
        return sj_fail(error, SJ_ETIMEDOUT,
                       "the query ran longer than its limit of %lld ms and was ended",
                       (long long)asked->time_ms);
    }
    return sj_fail(error, SJ_ELIMIT,
                   "the process that answered the query has ended (%s %d): it may have needed more "
                   "memory than it may have",
                   WIFSIGNALED(ended) ? "signal" : "exit code",
                   WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
}

/* Starts a worker if none is running. A worker that ended while it was idle is replaced, so that
 * the next question does not fail. */
static sj_status ready_worker(const sj_question_pool *pool, worker *ready, sj_error *error)
{
    if (ready->pid != 0 && waitpid(ready->pid, NULL, WNOHANG) == ready->pid) {
        close(ready->pipe);
        ready->pid = 0;
    }
    return ready->pid != 0 ? SJ_OK : start_worker(pool, ready, error);
}

static sj_status ask_worker(const sj_question_pool *pool, const asking *asked, char *question,
                            char **result, sj_error *error)
{
    sj_question_head head;
    char *text = NULL;
    SJ_TRY(ready_worker(pool, asked->by, error));
    limit_cpu(asked);
    const sj_status status = converse(asked, question, &head, &text, error);
    if (status != SJ_OK) {
        return replace_worker(pool, asked, status, error);
    }
    if (head.status != SJ_OK) {
        sj_fail(error, (sj_status)head.status, "%s", text);
        free(text);
        return (sj_status)head.status;
    }
    *result = text;
    return SJ_OK;
}

sj_status sj_question_pool_ask(sj_question_pool *pool, const json_t *question,
                               bool (*is_wanted)(void *context), void *context, char **result,
                               sj_error *error)
{
    char *text = json_dumps(question, JSON_COMPACT);
    asking asked = {.is_wanted = is_wanted,
                    .context = context,
                    .time_ms = json_integer_value(json_object_get(question, "ms"))};
    if (text == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    asked.by = claim_worker(pool);
    if (asked.by == NULL) {
        free(text);
        return sj_fail(error, SJ_EAGAIN, "too many questions at once");
    }
    asked.end_ms = now_ms() + asked.time_ms * SJ_QUESTION_WAITING_FACTOR + GRACE_MS;
    const sj_status status = ask_worker(pool, &asked, text, result, error);
    give_worker(pool, asked.by);
    free(text);
    return status;
}

/* True if this process was started as a worker. Workers have their name as argv[0]. */
static bool is_worker(void)
{
    return strcmp(program_invocation_name, SJ_QUESTION_WORKER) == 0;
}

sj_status sj_question_pool_new(const char *path, const sj_question_limits *limits,
                               sj_question_pool **pool, sj_error *error)
{
    if (is_worker()) {
        /* Otherwise such a program would start itself again and again. */
        return sj_fail(error, SJ_EPERM,
                       "a process for questions cannot start further ones: main() must begin with "
                       "sj_question_worker_main");
    }
    sj_question_pool *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->path = strdup(path)) == NULL) {
        free(made);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->lock, NULL);
    made->limits = *limits;
    *pool = made;
    return SJ_OK;
}

void sj_question_pool_free(sj_question_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    for (size_t i = 0; i < WORKERS; i++) {
        if (pool->workers[i].pid != 0) {
            (void)end_worker(&pool->workers[i]);
        }
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool->path);
    free(pool);
}
