/* A foreign process under ptrace: its threads, stopped and resumed together, and its memory.
 *
 * All calls on one target come from the thread that opened it (the kernel ties tracing to it).
 * When that thread ends, whatever the reason, the kernel lets every thread of the target run on. */
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
    int memory; /* /proc/PID/mem */
    sj_tracee_thread *threads;
    size_t count;
    size_t capacity;
    uint64_t resumed_ns; /* monotonic: when threads ran on after the last sj_tracee_stop_all */
    bool replaced;       /* it executed another program while it was traced */
    bool hurries; /* this thread goes before others, as it may, while all threads are stopped */
} sj_tracee;

/* sj_tracee_lock and sj_tracee_unlock bracket the use of a target where several threads of this
 * process may want one of the same process: the kernel allows one tracer. Blocking. */
void sj_tracee_lock(void);
void sj_tracee_unlock(void);

/* sj_tracee_open opens the memory of a process and traces none of its threads yet. SJ_ENOTFOUND,
 * SJ_EPERM: the error says what forbids it and what to do. */
SJ_MUST_CHECK sj_status sj_tracee_open(pid_t pid, sj_tracee *target, sj_error *error);

/* sj_tracee_close lets all threads go. Twice is allowed. */
void sj_tracee_close(sj_tracee *target);

/* sj_tracee_is_there returns whether the process still has the memory that was opened: it has
 * neither ended nor executed another program. */
bool sj_tracee_is_there(const sj_tracee *target);

/* sj_tracee_read and sj_tracee_write move all of `size` bytes or fail with SJ_EIO. Write ignores
 * page protections: text of private mappings can be written. */
SJ_MUST_CHECK sj_status sj_tracee_read(const sj_tracee *target, uint64_t address, void *bytes,
                                       size_t size);
SJ_MUST_CHECK sj_status sj_tracee_write(const sj_tracee *target, uint64_t address,
                                        const void *bytes, size_t size);

/* sj_tracee_stop_all stops every thread, those that start meanwhile included. SJ_ECLOSED the
 * process is gone or runs another program, SJ_ETIMEDOUT a thread does not stop; then all run on. */
SJ_MUST_CHECK sj_status sj_tracee_stop_all(sj_tracee *target, sj_error *error);

/* sj_tracee_stop_one stops one thread, traced from then on; `*thread` is its index. Errors as
 * sj_tracee_stop_all. */
SJ_MUST_CHECK sj_status sj_tracee_stop_one(sj_tracee *target, pid_t tid, size_t *thread);

/* sj_tracee_resume_all lets the stopped threads run and traces none any more. */
void sj_tracee_resume_all(sj_tracee *target);

/* sj_tracee_resume_others does so with all but one, whose index is 0 then. */
void sj_tracee_resume_others(sj_tracee *target, size_t thread);

/* sj_tracee_wait waits for the next stop of a thread that was resumed with a ptrace request.
 * `*wait_status` is as waitpid(2) gives it. SJ_ECLOSED, SJ_ETIMEDOUT. */
SJ_MUST_CHECK sj_status sj_tracee_wait(sj_tracee *target, size_t thread, int timeout_ms,
                                       int *wait_status);

/* sj_tracee_is_asleep returns whether a thread that runs waits for something. */
bool sj_tracee_is_asleep(const sj_tracee *target, size_t thread);

/* sj_tracee_run_on lets one stopped thread run for about so long from when it is given a core, with
 * its signals, and stops it again. It may have made threads and processes, or loaded modules: see
 * sj_tracee_stop_all. Never by single steps, whose flag would kill the thread if this process were
 * killed meanwhile. Errors as sj_tracee_stop_all. */
SJ_MUST_CHECK sj_status sj_tracee_run_on(sj_tracee *target, size_t thread, uint32_t nanoseconds);

#endif
