/* Hooks and unhooks functions of a running process from outside.
 *
 * The agent keeps every change that it prepared in the program's memory (agent/abi/agent_state.h).
 * While all threads are stopped, the bytes are written through /proc/PID/mem. That needs no change
 * of page protections and runs no code in the program, so the tracer may be killed at any moment. A
 * thread whose program counter is in bytes to be written is moved out of them first (text_patch.h).
 *
 * All functions of a call share one stop, whose length is reported. Threads blocked in system calls
 * continue with them. Only system calls that the kernel never restarts after a stop (epoll_wait,
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
    uint64_t stopped_ns; /* From the stop of the first thread to the resumption of the last. */
    uint32_t threads;
    uint32_t changed; /* Pieces of text that were written: the entry and each exit of a function. */
    /* Pieces that were not changed: other bytes were there, or a thread could not be moved. */
    uint32_t refused;
    /* Threads that a new program counter alone could not move out of the bytes to be written. The
     * tracer let them run for a moment. */
    uint32_t moved;
} sj_hook_functions_report;

/* Hooks (`on`) or unhooks the functions with these ids (of the session; sorted ascending) in the
 * process `pid`. The process was launched by `record` or attached to. Skips functions that were not
 * planned, or that are hooked or unhooked already. If `functions` is NULL, hooks or unhooks all.
 * Updates `freed`, unless it is NULL, while the threads are stopped; if `functions` is NULL,
 * `freed` must be NULL. Blocks for milliseconds. Thread-safe. It traces the process during the
 * call, so no other tracer may. Returns SJ_ENOTFOUND if the process has ended or has no agent, and
 * SJ_EPERM if ptrace is refused (the error says why). Returns SJ_EAGAIN if the agent was busy with
 * modules for too long. After SJ_EIO some functions may have changed; other errors change nothing.
 */
SJ_MUST_CHECK sj_status sj_hook_functions(pid_t pid, const uint32_t *functions, size_t count,
                                          bool on, sj_unhooked_set *freed,
                                          sj_hook_functions_report *report, sj_error *error);

#endif
