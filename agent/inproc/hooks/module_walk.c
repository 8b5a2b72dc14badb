#include "agent/inproc/hooks/module_walk.h"

#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <signal.h>
#include <stdint.h>

#define SIGNAL_BIT(signal) (UINT64_C(1) << ((signal)-1))

int sj_module_walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                   void *context)
{
    const uint64_t faults = SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) |
                            SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS);
    const uint64_t others = ~faults;
    uint64_t before = 0;
    const bool is_blocked = sj_recorder_may_call() && SJ_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &others,
                                                             &before, sizeof(before), 0, 0) == 0;
    const int result = dl_iterate_phdr(visit, context);
    if (is_blocked) {
        (void)SJ_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before), 0, 0);
    }
    return result;
}
