/* Facts about a process that /proc reports. Thread-safe. No function blocks for long. */
#ifndef SJ_AGENT_PTRACE_PROC_STATUS_H
#define SJ_AGENT_PTRACE_PROC_STATUS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sj_proc_status {
    char name[64];
    char state;   /* the kernel's letter: R S D T t Z ... */
    pid_t leader; /* pid of the process; `pid` may be the tid of any of its threads */
    pid_t parent;
    pid_t pid_inside; /* pid of the process (or tid of the thread) in its own PID namespace */
    /* its own PID namespace is below the one of /proc, so its numbers there are others */
    bool has_own_numbers;
    pid_t tracer;
    uint32_t user;
    uint32_t effective_user;
    uint32_t threads;
    uint64_t capabilities;    /* permitted capabilities */
    int seccomp;              /* 0: none */
    unsigned seccomp_filters; /* 0: none, or the kernel does not report it */
    /* has seccomp filters that may forbid more than the filters of this process */
    bool is_confined;
    bool is_ending; /* its memory is already gone */
    bool is_kernel;
} sj_proc_status;

/* Fills `facts`. Returns SJ_ENOTFOUND if the process does not exist. */
SJ_MUST_CHECK sj_status sj_proc_status_read(pid_t pid, sj_proc_status *facts);

/* Facts that the kernel reports of one thread. Also available for a zombie. */
typedef struct sj_proc_thread {
    char state; /* the kernel's letter: R S D T t Z X ... */
    bool is_kernel;
    bool is_exiting; /* it will not run the program again */
    pid_t parent;
    long threads; /* number of threads in its process */
    /* since the boot of the machine, in clock ticks of the kernel */
    unsigned long long started_ticks;
} sj_proc_thread;

/* Fills `thread` without allocating memory. Returns SJ_ENOTFOUND if the thread does not exist. */
SJ_MUST_CHECK sj_status sj_proc_thread_read(pid_t pid, pid_t tid, sj_proc_thread *thread);

/* Returns how often a thread has given up its processor to wait, or 0 if this is unknown. */
uint64_t sj_proc_count_waits(pid_t pid, pid_t tid);

/* True if the process has a thread that has not ended. Its first thread may have ended. */
bool sj_proc_is_alive(pid_t pid);

/* True if no thread of the process will run the program again: each has ended, is exiting or has
 * been killed. The memory of such a process may stay for a while, and is read as before. True if
 * the process does not exist. */
bool sj_proc_is_ending(pid_t pid);

/* Returns `pid`, or the tid of a living thread if the process's first thread has ended and others
 * have not. /proc shows the memory of a process only through living threads. */
pid_t sj_proc_living(pid_t pid);

/* The member of sj_proc_status; false if the process does not exist. */
bool sj_proc_has_own_numbers(pid_t pid);

/* Returns the tid of a thread that the process itself knows as `tid_inside`, or 0 if the thread has
 * ended. Both are the same if the process has no own numbers. */
pid_t sj_proc_find_thread(pid_t pid, pid_t tid_inside);

#endif
