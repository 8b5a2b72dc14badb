/* Facts about a process that /proc reports. Any thread; nothing here blocks for long. */
#ifndef SJ_AGENT_PTRACE_PROC_STATUS_H
#define SJ_AGENT_PTRACE_PROC_STATUS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sj_proc_status {
    char name[64];
    char state;   /* R S D T t Z ... */
    pid_t leader; /* the process when `pid` names one of its threads */
    pid_t parent;
    pid_t pid_inside; /* its number in its own PID namespace */
    pid_t tracer;
    uint32_t user;
    uint32_t effective_user;
    uint32_t threads;
    uint64_t capabilities;    /* permitted */
    int seccomp;              /* 0: none */
    unsigned seccomp_filters; /* 0: none, or the kernel does not report it */
    bool is_confined;         /* by seccomp, more than this process is */
    bool is_ending;           /* its memory is gone already */
    bool is_kernel;
} sj_proc_status;

/* sj_proc_status_read fills `facts`. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_proc_status_read(pid_t pid, sj_proc_status *facts);

/* What the kernel reports of one thread, also of one that only waits to be reaped. */
typedef struct sj_proc_thread {
    char state; /* R S D T t Z X ... */
    pid_t parent;
    long threads;                     /* of its process */
    unsigned long long started_ticks; /* since the machine's start, in the kernel's ticks */
} sj_proc_thread;

/* sj_proc_thread_read fills `thread`; it allocates nothing. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_proc_thread_read(pid_t pid, pid_t tid, sj_proc_thread *thread);

/* sj_proc_is_alive returns whether a process has threads that have not ended; its first one may
 * have. */
bool sj_proc_is_alive(pid_t pid);

/* sj_proc_living returns `pid`, or another thread of the process where its first one has ended
 * before the others: what /proc has of the memory of a process it shows by threads that live. */
pid_t sj_proc_living(pid_t pid);

/* sj_proc_has_thread returns whether the process has a thread `tid`. */
bool sj_proc_has_thread(pid_t pid, pid_t tid);

#endif
