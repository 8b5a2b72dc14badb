#include "agent/inproc/hooks/module_walk.h"

#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#define SIGNAL_BIT(signal) (UINT64_C(1) << ((signal)-1))

#define FORK_WAIT_NS UINT64_C(1000000000) /* a walk takes less, and so does a fork */

static _Atomic uint32_t walks; /* threads that walk */
static _Atomic uint32_t forks; /* threads that fork */
/* How often this thread's walks are nested. */
static __thread uint32_t depth __attribute__((tls_model("initial-exec")));

/* Waits until the counter is 0. Returns false if that takes longer than `wait_ns`. */
static bool await_none(_Atomic uint32_t *counter, uint64_t wait_ns)
{
    uint64_t start_ns = 0; /* 0: not read yet */
    while (atomic_load(counter) != 0) {
        start_ns = start_ns != 0 ? start_ns : sj_sys_clock_ns(CLOCK_MONOTONIC);
        if (sj_sys_clock_ns(CLOCK_MONOTONIC) - start_ns >= wait_ns) {
            return false;
        }
        (void)SJ_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return true;
}

static void begin_walk(bool may_wait)
{
    atomic_fetch_add(&walks, 1);
    while (depth == 0 && may_wait && atomic_load(&forks) != 0) {
        atomic_fetch_sub(&walks, 1);
        may_wait = await_none(&forks, FORK_WAIT_NS);
        atomic_fetch_add(&walks, 1);
    }
    depth++;
}

static void end_walk(void)
{
    depth--;
    atomic_fetch_sub(&walks, 1);
}

bool sj_module_walk_begin_fork(uint64_t wait_ns)
{
    atomic_fetch_add(&forks, 1);
    return await_none(&walks, wait_ns);
}

void sj_module_walk_end_fork(bool is_child)
{
    if (is_child) { /* a child has none of its parent's other threads */
        atomic_store(&walks, 0);
        atomic_store(&forks, 0);
    } else {
        atomic_fetch_sub(&forks, 1);
    }
}

int sj_module_walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                   void *context)
{
    const uint64_t faults = SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) |
                            SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS);
    const uint64_t others = ~faults;
    uint64_t before = 0;
    const bool may_call = sj_recorder_may_call();
    const bool is_blocked = may_call && SJ_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &others, &before,
                                               sizeof(before), 0, 0) == 0;
    begin_walk(may_call);
    const int result = dl_iterate_phdr(visit, context);
    end_walk();
    if (is_blocked) {
        (void)SJ_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before), 0, 0);
    }
    return result;
}
