/* Waits for the stops of a thread that makes an inferior call. */
#ifndef SJ_AGENT_PTRACE_CALL_WAIT_H
#define SJ_AGENT_PTRACE_CALL_WAIT_H

#include "agent/ptrace/arch.h"

typedef struct sj_call_wait {
    int alone_ms; /* copied from the sj_inferior_call */
    uint32_t stops;
    uint64_t begun_ns;
    uint64_t deadline_ns;
} sj_call_wait;

/* Begins the wait for a call that may take `timeout_ms` altogether. */
sj_call_wait sj_call_wait_begin(const sj_inferior_call *call, int timeout_ms);

/* Waits for the next stop of thread `*thread`, which runs. `*wait_status` is the status of
 * waitpid(2). May resume the other threads, under the conditions of sj_inferior_call.alone_ms. If
 * so, sets `*thread` to 0, its new index. Returns SJ_ETIMEDOUT if the time limit of the whole call
 * is over, and the thread still runs. Returns SJ_ECLOSED if the thread has ended. */
SJ_MUST_CHECK sj_status sj_call_wait_next(sj_call_wait *wait, sj_tracee *target, size_t *thread,
                                          int *wait_status);

#endif
