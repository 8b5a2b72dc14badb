/* Functions of a running process are hooked or unhooked from outside.
 *
 * The agent keeps, in the app, every change that it prepared (agent/abi/agent_state.h). With all
 * threads stopped the bytes are written through /proc/PID/mem, which needs no change of page
 * protections and runs no code in the app: the tracer may be killed at any moment. A thread
 * whose program counter lies in bytes that are to be written is moved out of them first
 * (text_patch.h).
 *
 * All functions of a call share one stop; its length is reported. Threads blocked in system calls
 * go on with them; only those that the kernel never restarts after a stop (epoll_wait,
 * sigtimedwait, ...; signal(7)) return EINTR. */
#ifndef SJ_AGENT_LIVEPATCH_TOGGLE_H
#define SJ_AGENT_LIVEPATCH_TOGGLE_H

#include "agent/livepatch/unhooked_set.h"
#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sj_hook_functions_report {
    uint64_t stopped_ns; /* from the first thread's stop to the last one's resumption */
    uint32_t threads;
    uint32_t changed; /* pieces of text written: a head and each tail of a function */
    uint32_t
        refused; /* pieces left as they were: other bytes there, or a thread could not be moved */
    uint32_t moved; /* threads that stood in bytes to be written */
} sj_hook_functions_report;

/* sj_hook_functions hooks (`on`) or unhooks the functions with these ids (of the session;
 * sorted ascending) in the process `pid`, launched by `record` or attached to. Functions that were
 * not planned, and those that are so already, are passed over. NULL for `functions` means all.
 * `freed`, unless NULL, is updated while the threads are stopped; only with `functions`.
 * Blocking: milliseconds. Any thread; traces the process for the time of the call, so nobody else
 * may. SJ_ENOTFOUND no process or no agent in it, SJ_EPERM ptrace is refused (the error says why),
 * SJ_EAGAIN the agent was busy with modules for too long. After SJ_EIO some may
 * have been changed, else a failure changes nothing. */
SJ_MUST_CHECK sj_status sj_hook_functions(pid_t pid, const uint32_t *functions, size_t count,
                                          bool on, sj_unhooked_set *freed,
                                          sj_hook_functions_report *report, sj_error *error);

#endif
