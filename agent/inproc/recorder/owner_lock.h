/* A lock that knows its owner. Threads wait for each other. A signal handler that interrupts the
 * owner gets an error instead of waiting for ever. Zeroed means free. Async-signal-safe. */
#ifndef SJ_AGENT_INPROC_RECORDER_OWNER_LOCK_H
#define SJ_AGENT_INPROC_RECORDER_OWNER_LOCK_H

#include "agent/inproc/recorder/sys.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t sj_owner_lock; /* tid; 0: free */

/* Locks; waits for other threads. Returns false if this thread holds the lock already. */
static inline bool sj_owner_lock_acquire(sj_owner_lock *lock)
{
    const uint32_t self = sj_sys_tid();
    for (;;) {
        uint32_t owner = 0;
        if (atomic_compare_exchange_strong(lock, &owner, self)) {
            return true;
        }
        if (owner == self) {
            return false;
        }
        (void)SJ_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

static inline void sj_owner_lock_free(sj_owner_lock *lock)
{
    atomic_store(lock, 0);
}

#endif
