/* Design notes
 *
 * The agent's mappings count against RLIMIT_AS. A program that knows how much it needs would reach
 * its limit too early. So the agent releases what it can before the limit applies. In the C
 * library's setrlimit and prlimit a jump to a gate replaces the instruction that loads the number
 * of the system call. If the kernel then refuses the limit, the only cost is fewer slots for
 * threads. */
#include "agent/inproc/core/limits.h"

#include "agent/inproc/core/arch.h"
#include "agent/inproc/core/gates.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/definition.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

static sj_hooked_module hooks[2];

/* Copies the limit that the program passes to the kernel. Its address may be invalid. */
static bool read_limit(const struct rlimit *limit, struct rlimit *copy)
{
    const struct iovec here = {.iov_base = copy, .iov_len = sizeof(*copy)};
    const struct iovec there = {.iov_base = (void *)(uintptr_t)limit, .iov_len = sizeof(*copy)};
    const long got = SJ_SYS(SYS_process_vm_readv, sj_sys_pid(), &here, 1, &there, 1, 0);
    if (got == -ENOSYS) { /* emulators lack the call */
        memcpy(copy, limit, sizeof(*copy));
        return true;
    }
    return got == (long)sizeof(*copy);
}

void sj_limits_on_change(uint64_t process, uint64_t resource, const struct rlimit *limit)
{
    struct rlimit copy;
    if ((uint32_t)resource != RLIMIT_AS || limit == NULL || !sj_recorder_begin_calls()) {
        return;
    }
    const bool is_own = (uint32_t)process == 0 || (uint32_t)process == sj_sys_pid();
    if (is_own && read_limit(limit, &copy) && copy.rlim_cur != RLIM_INFINITY) {
        sj_recorder_limit_space(copy.rlim_cur);
    }
    sj_recorder_end_calls();
}

static sj_status watch(const char *name, void (*gate)(void), uint64_t *resume,
                       sj_hooked_module *hook)
{
    const uint64_t function = sj_definition_find(name, NULL);
    const int32_t at = function != 0 ? sj_arch_find_limit_call(function) : -1;
    return at >= 0 ? sj_gate_put(function + (uint64_t)at, gate, resume, hook) : SJ_EUNSUPPORTED;
}

sj_status sj_limits_follow(void)
{
    const sj_status own =
        watch("setrlimit", sj_arch_setrlimit_entry, &sj_arch_setrlimit_resume, &hooks[0]);
    const sj_status any =
        watch("prlimit", sj_arch_prlimit_entry, &sj_arch_prlimit_resume, &hooks[1]);
    return own != SJ_OK ? own : any;
}
