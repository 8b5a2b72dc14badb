/* A foreign process under ptrace: its threads, which are stopped and resumed together, and its
 * memory.
 *
 * All calls for one target must come from the thread that opened it, because the kernel ties
 * tracing to that thread. When that thread ends for any reason, the kernel resumes every thread of
 * the target. */
#ifndef SJ_AGENT_PTRACE_TRACEE_H
#define SJ_AGENT_PTRACE_TRACEE_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sj_tracee_thread {
    pid_t tid;
    bool stopped;
} sj_tracee_thread;

typedef struct sj_tracee {
    pid_t pid;
    int memory; /* descriptor of /proc/PID/mem */
    sj_tracee_thread *threads;
    size_t count;
    size_t capacity;
    /* monotonic time at which the threads were resumed after the last sj_tracee_stop_all */
    uint64_t resumed_ns;
    bool replaced; /* the process executed another program while it was traced */
    /* the process is a child of the tracer: its exit status belongs to the code that started it */
    bool is_child;
    /* the tracer has raised its own priority, which it does while all threads are stopped */
    bool is_boosted;
    int stop_timeout_ms; /* how long a thread may take to stop */
    /* a thread that did not stop, or runs under another number since an exec, may still be traced,
     * and stops later: call sj_tracee_free_left, or end the calling thread */
    bool is_left_traced;
} sj_tracee;

/* Lock and unlock a mutex of this process. The kernel allows one tracer per process. So if several
 * threads may trace the same process, each holds the mutex from sj_tracee_open to sj_tracee_close.
 * sj_tracee_lock blocks. */
void sj_tracee_lock(void);
void sj_tracee_unlock(void);

/* Resumes threads that stopped after the calling thread had given up waiting for their stop. Such
 * threads stay stopped until this is called. Does not block. */
void sj_tracee_free_left(void);

/* Opens the memory of a process. Does not trace any thread yet. Returns SJ_ENOTFOUND if the process
 * does not exist. Returns SJ_EPERM if tracing is not allowed; `error` says what forbids it and what
 * to do. */
SJ_MUST_CHECK sj_status sj_tracee_open(pid_t pid, sj_tracee *target, sj_error *error);

/* Stops tracing and resumes all threads. A second call does nothing. */
void sj_tracee_close(sj_tracee *target);

/* True if the process still has the memory that was opened. False if it has ended or executed
 * another program. */
bool sj_tracee_is_there(const sj_tracee *target);

/* sj_tracee_read and sj_tracee_write transfer all of `size` bytes, or fail with SJ_EIO. Writes
 * ignore page protections, so that the text of private mappings can be written. */
SJ_MUST_CHECK sj_status sj_tracee_read(const sj_tracee *target, uint64_t address, void *bytes,
                                       size_t size);
SJ_MUST_CHECK sj_status sj_tracee_write(const sj_tracee *target, uint64_t address,
                                        const void *bytes, size_t size);

/* Stops every thread, including threads that start meanwhile. Returns SJ_ECLOSED if the process is
 * gone or runs another program. Returns SJ_ETIMEDOUT if a thread does not stop. On failure all
 * threads are resumed. */
SJ_MUST_CHECK sj_status sj_tracee_stop_all(sj_tracee *target, sj_error *error);

/* Stops one thread, which is traced from then on. `*thread` is its index. Returns SJ_ECLOSED if the
 * thread has ended. Also returns the errors of sj_tracee_stop_all. */
SJ_MUST_CHECK sj_status sj_tracee_stop_one(sj_tracee *target, pid_t tid, size_t *thread);

/* Resumes all stopped threads and stops tracing them. */
void sj_tracee_resume_all(sj_tracee *target);

/* Resumes all threads except `thread`, and stops tracing them. The index of `thread` becomes 0. */
void sj_tracee_resume_others(sj_tracee *target, size_t thread);

/* Waits for the next stop of a thread that was resumed with a ptrace request. `*wait_status` is the
 * status of waitpid(2). Returns SJ_ECLOSED or SJ_ETIMEDOUT. */
SJ_MUST_CHECK sj_status sj_tracee_wait(sj_tracee *target, size_t thread, int timeout_ms,
                                       int *wait_status);

/* True if a thread sleeps in the kernel (state S in /proc). */
bool sj_tracee_is_asleep(const sj_tracee *target, size_t thread);

/* Lets one stopped thread run for about `nanoseconds` of scheduled time, then stops it again.
 * Signals that arrive meanwhile are delivered. The thread may have created threads and processes,
 * or loaded modules: see sj_tracee_stop_all. Does not use single steps: the processor's flag for
 * them would stay set if this process were killed meanwhile, and would kill the thread. The errors
 * are those of sj_tracee_stop_all. */
SJ_MUST_CHECK sj_status sj_tracee_run_on(sj_tracee *target, size_t thread, uint32_t nanoseconds);

#endif
