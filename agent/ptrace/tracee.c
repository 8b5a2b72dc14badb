#include "agent/ptrace/tracee.h"

#include "agent/host/clock.h"
#include "agent/ptrace/proc_status.h"
#include "agent/ptrace/waits.h"
#include "proto/base/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STOP_TIMEOUT_MS = 5000, CORE_TIMEOUT_MS = 200, SPINS = 200, PAUSE_NS = 50000 };

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool is_event_stop(int wait_status)
{
    return WIFSTOPPED(wait_status) && wait_status >> 16 == PTRACE_EVENT_STOP;
}

static pthread_mutex_t tracing = PTHREAD_MUTEX_INITIALIZER;

void sj_tracee_lock(void)
{
    pthread_mutex_lock(&tracing);
}

void sj_tracee_unlock(void)
{
    pthread_mutex_unlock(&tracing);
}

sj_status sj_tracee_open(pid_t pid, sj_tracee *target, sj_error *error)
{
    char path[64];
    sj_proc_thread leader;
    *target = (sj_tracee){.pid = pid, .memory = -1, .stop_timeout_ms = STOP_TIMEOUT_MS};
    target->is_child = sj_proc_thread_read(pid, pid, &leader) == SJ_OK && leader.parent == getpid();
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)sj_proc_living(pid));
    target->memory = open(path, O_RDWR | O_CLOEXEC);
    if (target->memory >= 0) {
        return SJ_OK;
    }
    if (errno == ENOENT || errno == ESRCH) {
        return sj_fail(error, SJ_ENOTFOUND, "there is no process %d", (int)pid);
    }
    return sj_fail(error, SJ_EPERM, "the memory of process %d cannot be reached: %s", (int)pid,
                   strerror(errno));
}

bool sj_tracee_is_there(const sj_tracee *target)
{
    char byte;
    /* Linux: the read returns 0 if no process uses the address space any more. Otherwise the read
     * fails with EIO, because address 0 is unmapped. */
    return pread(target->memory, &byte, 1, 0) != 0;
}

static sj_status move_memory(const sj_tracee *target, uint64_t address, void *in, const void *out,
                             size_t size)
{
    size_t moved = 0;
    while (moved < size) {
        const off_t at = (off_t)(address + moved);
        const ssize_t count =
            in != NULL ? pread(target->memory, (char *)in + moved, size - moved, at)
                       : pwrite(target->memory, (const char *)out + moved, size - moved, at);
        if (count <= 0 && !(count < 0 && errno == EINTR)) {
            return SJ_EIO;
        }
        moved += count > 0 ? (size_t)count : 0;
    }
    return SJ_OK;
}

sj_status sj_tracee_read(const sj_tracee *target, uint64_t address, void *bytes, size_t size)
{
    return move_memory(target, address, bytes, NULL, size);
}

sj_status sj_tracee_write(const sj_tracee *target, uint64_t address, const void *bytes, size_t size)
{
    return move_memory(target, address, NULL, bytes, size);
}

static void forget_thread(sj_tracee *target, size_t thread)
{
    target->threads[thread] = target->threads[--target->count];
}

static size_t find_thread(const sj_tracee *target, pid_t tid)
{
    size_t at = 0;
    while (at < target->count && target->threads[at].tid != tid) {
        at++;
    }
    return at;
}

/* Returns the state letter of a thread (proc(5)), or 0 if the thread is gone. */
static char read_state(const sj_tracee *target, pid_t tid)
{
    sj_proc_thread thread;
    return sj_proc_thread_read(target->pid, tid, &thread) == SJ_OK ? thread.state : '\0';
}

/* True if the thread is gone or a zombie. The main thread is a zombie if it ended before the
 * others. */
static bool is_dead(const sj_tracee *target, pid_t tid)
{
    const char state = read_state(target, tid);
    return state == '\0' || state == 'Z' || state == 'X';
}

bool sj_tracee_is_asleep(const sj_tracee *target, size_t thread)
{
    return read_state(target, target->threads[thread].tid) == 'S';
}

/* Seizes a thread and requests its stop, without waiting for the stop. Returns SJ_OK with `*added`
 * false if the thread has ended. */
static sj_status seize(sj_tracee *target, pid_t tid, bool *added)
{
    *added = false;
    SJ_TRY(sj_array_reserve(&target->threads, &target->capacity, target->count, 1,
                            sizeof(*target->threads)));
    if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACEEXEC) != 0) {
        return errno == ESRCH || is_dead(target, tid) ? SJ_OK : SJ_EPERM;
    }
    target->threads[target->count++] = (sj_tracee_thread){.tid = tid};
    *added = true;
    (void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    return SJ_OK;
}

/* True if `tid` is the main thread of an ended child of this process. Does not consume the exit
 * status: the code that started the child needs it. */
static bool has_ended_child(const sj_tracee *target, pid_t tid)
{
    siginfo_t info = {0};
    return target->is_child && tid == target->pid &&
           waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0 &&
           info.si_pid == tid &&
           (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED);
}

/* Consumes the next state of a thread, as waitpid(2) does. For the main thread of a child, consumes
 * only stops: the child's exit status belongs to the code that started it. */
static pid_t consume_state(const sj_tracee *target, pid_t tid, int *wait_status)
{
    siginfo_t info = {0};
    if (!target->is_child || tid != target->pid) {
        return waitpid(tid, wait_status, __WALL | WNOHANG);
    }
    if (waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL) != 0) {
        return -1;
    }
    *wait_status = (int)((unsigned)info.si_status << 8 | 0x7f); /* WIFSTOPPED, with its event */
    return info.si_pid;
}

sj_status sj_tracee_wait(sj_tracee *target, size_t thread, int timeout_ms, int *wait_status)
{
    const pid_t tid = target->threads[thread].tid;
    const uint64_t deadline_ms = now_ms() + (uint64_t)timeout_ms;
    for (unsigned spins = 0;; spins++) {
        if (has_ended_child(target, tid)) {
            target->threads[thread].stopped = false;
            return SJ_ECLOSED;
        }
        const pid_t got = consume_state(target, tid, wait_status);
        if (got == tid) {
            target->threads[thread].stopped = WIFSTOPPED(*wait_status);
            target->replaced |= *wait_status >> 16 == PTRACE_EVENT_EXEC;
            return WIFSTOPPED(*wait_status) ? SJ_OK : SJ_ECLOSED;
        }
        if (got < 0 && errno != EINTR) {
            return SJ_ECLOSED;
        }
        if (spins >= SPINS) {
            const struct timespec pause = {.tv_nsec = PAUSE_NS};
            if (now_ms() >= deadline_ms) {
                return SJ_ETIMEDOUT;
            }
            if (is_dead(target, tid)) {
                return SJ_ECLOSED;
            }
            nanosleep(&pause, NULL);
        }
    }
}

/* A stop on entry to or exit from a system call, which PTRACE_SYSCALL requested. */
static bool is_syscall_stop(int wait_status)
{
    return WSTOPSIG(wait_status) == (SIGTRAP | 0x80);
}

/* Returns the signal to deliver to a stopped thread when it is resumed, or 0. */
static int signal_of(int wait_status)
{
    return wait_status >> 16 != 0 || is_syscall_stop(wait_status) ? 0 : WSTOPSIG(wait_status);
}

/* Waits for the stop that PTRACE_INTERRUPT requested. Delivers signals that arrive before it. If
 * the stop has interrupted a wait, the thread will repeat the wait. */
static sj_status await_stop(sj_tracee *target, size_t thread)
{
    int wait_status = 0;
    for (;;) {
        SJ_TRY(sj_tracee_wait(target, thread, target->stop_timeout_ms, &wait_status));
        const pid_t tid = target->threads[thread].tid;
        if (is_event_stop(wait_status)) {
            (void)!sj_wait_repeat(tid);
            return SJ_OK;
        }
        const int signal = signal_of(wait_status);
        target->threads[thread].stopped = false;
        (void)ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)signal);
        /* During an inferior call, a thread may stop at a system call first. This stop cancels
         * the PTRACE_INTERRUPT, so send another one. */
        if (is_syscall_stop(wait_status)) {
            (void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
        }
    }
}

static sj_status seize_new(sj_tracee *target, bool *found)
{
    char path[64];
    sj_status status = SJ_OK;
    *found = false;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)target->pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return SJ_ECLOSED;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL && status == SJ_OK;
         entry = readdir(folder)) {
        const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        bool added = false;
        if (tid > 0 && find_thread(target, tid) == target->count) {
            status = seize(target, tid, &added);
            *found |= added;
        }
    }
    closedir(folder);
    return status;
}

/* Gives the calling thread real-time priority (SCHED_FIFO), because all threads of the target wait
 * for it. On a busy machine, the scheduler might otherwise suspend it for many milliseconds. Does
 * nothing without permission. */
static void boost(sj_tracee *target)
{
    const struct sched_param first = {.sched_priority = 1};
    target->is_boosted = target->is_boosted || (sched_getscheduler(0) == SCHED_OTHER &&
                                                sched_setscheduler(0, SCHED_FIFO, &first) == 0);
}

static void end_boost(sj_tracee *target)
{
    const struct sched_param usual = {.sched_priority = 0};
    if (target->is_boosted) {
        target->is_boosted = false;
        (void)sched_setscheduler(0, SCHED_OTHER, &usual);
    }
}

static sj_status stop_all(sj_tracee *target)
{
    bool found = true;
    while (found) {
        SJ_TRY(seize_new(target, &found));
        for (size_t i = target->count; i-- > 0;) {
            const sj_status status = target->threads[i].stopped ? SJ_OK : await_stop(target, i);
            if (status == SJ_ECLOSED && !target->replaced) {
                forget_thread(target, i);
            } else if (status != SJ_OK) {
                return status;
            }
        }
    }
    return target->count == 0 || target->replaced ? SJ_ECLOSED : SJ_OK;
}

sj_status sj_tracee_stop_all(sj_tracee *target, sj_error *error)
{
    boost(target);
    target->resumed_ns = 0;
    const sj_status status = stop_all(target);
    if (status == SJ_OK) {
        return SJ_OK;
    }
    sj_tracee_resume_all(target);
    switch (status) {
    case SJ_ECLOSED:
        return sj_fail(error, status, "process %d has ended or runs another program",
                       (int)target->pid);
    case SJ_EPERM:
        return sj_fail(error, status, "threads of process %d may not be traced", (int)target->pid);
    default:
        return sj_fail(error, status,
                       "a thread of process %d does not stop: it hangs in the kernel",
                       (int)target->pid);
    }
}

sj_status sj_tracee_stop_one(sj_tracee *target, pid_t tid, size_t *thread)
{
    bool added = false;
    *thread = find_thread(target, tid);
    if (*thread == target->count) {
        SJ_TRY(seize(target, tid, &added));
        if (!added) {
            return SJ_ECLOSED;
        }
    }
    return target->threads[*thread].stopped ? SJ_OK : await_stop(target, *thread);
}

/* A thread that was asked to stop, and has not. */
typedef struct left_thread {
    pid_t pid;
    pid_t tid;
    bool is_child; /* as in sj_tracee */
} left_thread;

enum { LEFT_MOST = 64 };
typedef struct left_list {
    size_t count;
    left_thread threads[LEFT_MOST];
} left_list;

/* The list of the calling thread. It is freed when the thread ends, because the kernel then resumes
 * all threads that it traced. It is not thread-local: the direct library is loaded late, and the
 * loader has little such memory left then. */
static pthread_key_t left_key;
static bool has_left_key;

static void make_left_key(void)
{
    has_left_key = pthread_key_create(&left_key, free) == 0;
}

/* Returns NULL if out of memory. */
static left_list *find_left(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_left_key);
    left_list *list = has_left_key ? pthread_getspecific(left_key) : NULL;
    if (list == NULL && has_left_key) {
        list = calloc(1, sizeof(*list));
        if (list != NULL && pthread_setspecific(left_key, list) != 0) {
            free(list);
            list = NULL;
        }
    }
    return list;
}

static void keep_left(sj_tracee *target, pid_t tid)
{
    left_list *list = find_left();
    target->is_left_traced = true;
    if (list != NULL && list->count < LEFT_MOST && !is_dead(target, tid)) {
        list->threads[list->count++] =
            (left_thread){.pid = target->pid, .tid = tid, .is_child = target->is_child};
    }
}

void sj_tracee_free_left(void)
{
    left_list *list = find_left();
    for (size_t i = list != NULL ? list->count : 0; i-- > 0;) {
        const left_thread *left = &list->threads[i];
        const sj_tracee target = {.pid = left->pid, .is_child = left->is_child};
        int wait_status = 0;
        const pid_t got = consume_state(&target, left->tid, &wait_status);
        if (got == 0) {
            continue;
        }
        if (got == left->tid && WIFSTOPPED(wait_status)) {
            const int signal = signal_of(wait_status);
            if (!is_syscall_stop(wait_status)) {
                (void)!sj_wait_repeat(left->tid);
            }
            (void)ptrace(PTRACE_DETACH, left->tid, NULL, (void *)(intptr_t)signal);
        }
        list->threads[i] = list->threads[--list->count];
    }
}

static void resume_until(sj_tracee *target, size_t kept)
{
    while (target->count > kept) {
        const size_t last = target->count - 1;
        if (!target->threads[last].stopped) {
            (void)ptrace(PTRACE_INTERRUPT, target->threads[last].tid, NULL, NULL);
            (void)!await_stop(target, last);
        }
        if (ptrace(PTRACE_DETACH, target->threads[last].tid, NULL, NULL) != 0) {
            keep_left(target, target->threads[last].tid);
        }
        target->count--;
    }
    target->resumed_ns =
        target->resumed_ns == 0 ? sj_clock_ns(CLOCK_MONOTONIC) : target->resumed_ns;
    end_boost(target);
}

void sj_tracee_resume_all(sj_tracee *target)
{
    resume_until(target, 0);
}

void sj_tracee_resume_others(sj_tracee *target, size_t thread)
{
    const sj_tracee_thread kept = target->threads[thread];
    target->threads[thread] = target->threads[0];
    target->threads[0] = kept;
    resume_until(target, 1);
}

/* Returns how many times a thread has run on a CPU, or 0 if the kernel does not report the
 * number. */
static uint64_t count_slices(const sj_tracee *target, pid_t tid)
{
    char path[64];
    unsigned long long count = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)target->pid, (int)tid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%*u %*u %llu", &count) != 1) {
            count = 0;
        }
        fclose(file);
    }
    return count;
}

sj_status sj_tracee_run_on(sj_tracee *target, size_t thread, uint32_t nanoseconds)
{
    const struct timespec pause = {.tv_nsec = nanoseconds};
    const pid_t tid = target->threads[thread].tid;
    const uint64_t slices = count_slices(target, tid);
    const uint64_t deadline_ms = now_ms() + CORE_TIMEOUT_MS;
    target->threads[thread].stopped = false;
    if (ptrace(PTRACE_CONT, tid, NULL, NULL) != 0) {
        return SJ_ECLOSED;
    }
    do {
        nanosleep(&pause, NULL);
    } while (slices != 0 && count_slices(target, tid) == slices && now_ms() < deadline_ms);
    (void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    return await_stop(target, thread);
}

void sj_tracee_close(sj_tracee *target)
{
    sj_tracee_resume_all(target);
    free(target->threads);
    target->threads = NULL;
    target->capacity = 0;
    if (target->memory >= 0) {
        close(target->memory);
        target->memory = -1;
    }
}
