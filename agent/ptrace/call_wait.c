/* Design notes
 *
 * A thread that waits for a lock of a stopped thread sleeps in the kernel, or it makes one system
 * call after another (sched_yield, short sleeps), or it makes none. So the time and the number of
 * stops of the whole call are limited, not those between two system calls. */
#include "agent/ptrace/call_wait.h"

#include "agent/host/clock.h"

#include <time.h>

enum { STOPS_ALONE_MAX = 400 }; /* each system call has two; dlclose makes some ten calls */

#define MS_NS UINT64_C(1000000)
#define ALONE_NS (1000 * MS_NS)

sj_call_wait sj_call_wait_begin(const sj_inferior_call *call, int timeout_ms)
{
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    return (sj_call_wait){.alone_ms = call->alone_ms,
                          .begun_ns = now_ns,
                          .deadline_ns = now_ns + (uint64_t)timeout_ms * MS_NS};
}

/* True if the thread may need what another stopped thread holds, whatever it does. */
static bool has_been_alone_long(const sj_call_wait *wait)
{
    return wait->stops > STOPS_ALONE_MAX ||
           sj_clock_ns(CLOCK_MONOTONIC) - wait->begun_ns >= ALONE_NS;
}

/* Waits as long as the other threads stay stopped. Returns SJ_ETIMEDOUT if they have been resumed.
 * A thread that merely waits for a processor does not need the other threads. */
static sj_status wait_alone(const sj_call_wait *wait, sj_tracee *target, size_t thread,
                            int *wait_status)
{
    while (!has_been_alone_long(wait)) {
        const sj_status status = sj_tracee_wait(target, thread, wait->alone_ms, wait_status);
        if (status != SJ_ETIMEDOUT) {
            return status;
        }
        if (sj_tracee_is_asleep(target, thread)) {
            break;
        }
    }
    sj_tracee_resume_others(target, thread);
    return SJ_ETIMEDOUT;
}

sj_status sj_call_wait_next(sj_call_wait *wait, sj_tracee *target, size_t *thread, int *wait_status)
{
    wait->stops++;
    if (wait->alone_ms != 0 && target->count > 1) {
        const sj_status status = wait_alone(wait, target, *thread, wait_status);
        if (status != SJ_ETIMEDOUT) {
            return status;
        }
        *thread = 0;
    }
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    return now_ns < wait->deadline_ns
               ? sj_tracee_wait(target, *thread, (int)((wait->deadline_ns - now_ns) / MS_NS),
                                wait_status)
               : SJ_ETIMEDOUT;
}
