/* Design notes
 *
 * A program sets a filter by prctl or, through syscall, by seccomp. In both functions of libc a
 * jump to a gate replaces the instruction before the system call. The gate announces the filter
 * before the call is made, and waits for threads that are in system calls of the agent. So the
 * filter does not apply to a call of the agent. If the kernel then refuses the filter, the only
 * cost is that full buffers drop records.
 *
 * In strict mode, the instruction that reads the clock ends the thread. If it is the only thread,
 * the text is restored first and the recording ends. Other threads could be running the text that
 * is written. So strict mode is refused if there are any. It is refused in an attached process,
 * too, whose text a tracer writes. */
#include "agent/inproc/core/filters.h"

#include "agent/inproc/core/arch.h"
#include "agent/inproc/core/exec.h"
#include "agent/inproc/core/gates.h"
#include "agent/inproc/core/limits.h"
#include "agent/inproc/core/modules.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static sj_hooked_module hooks[2];
static bool is_attached; /* a tracer writes the text */

/* True if the process has only one thread. The kernel counts each thread as a link of the folder.
 */
static bool is_only_thread(void)
{
    enum { OWN_LINKS = 2 };
    struct stat status;
    const long folder = sj_sys_open_at(AT_FDCWD, "/proc/self/task", O_PATH | O_CLOEXEC, 0);
    if (folder < 0) {
        return false;
    }
    const bool is_read = SJ_SYS(SYS_fstat, folder, &status, 0, 0, 0, 0) == 0;
    (void)sj_sys_close((int)folder);
    return is_read && status.st_nlink == OWN_LINKS + 1;
}

static bool leave_for_strict_mode(void)
{
    if (is_attached || !is_only_thread()) {
        return false;
    }
    sj_recorder_disarm(SJ_DISARM_CONFINED);
    sj_modules_restore();
    return true;
}

/* Handles limits that are set by syscall(). */
static void set_limit(uint64_t number, uint64_t first, uint64_t second, uint64_t third)
{
    if (number == SYS_prlimit64) {
        sj_limits_on_change(first, second, (const struct rlimit *)(uintptr_t)third);
    } else if (number == SYS_setrlimit) {
        sj_limits_on_change(0, first, (const struct rlimit *)(uintptr_t)second);
    }
}

/* Handles programs that are run by syscall(). */
static void run_program(uint64_t number, uint64_t first, uint64_t second, uint64_t third,
                        uint64_t fourth, uint64_t fifth)
{
    if (number == SYS_execve) {
        sj_exec_try((const char *)(uintptr_t)first, (char *const *)(uintptr_t)second,
                    (char *const *)(uintptr_t)third);
    } else if (number == SYS_execveat) {
        sj_exec_try_at((int)first, (const char *)(uintptr_t)second, (char *const *)(uintptr_t)third,
                       (char *const *)(uintptr_t)fourth, (int)fifth);
    }
}

bool sj_filters_on_call(uint64_t number, uint64_t first, uint64_t second, uint64_t third,
                        uint64_t fourth, uint64_t fifth)
{
    const bool is_prctl = number == SYS_prctl && first == PR_SET_SECCOMP;
    const bool is_strict = (is_prctl && second == SECCOMP_MODE_STRICT) ||
                           (number == SYS_seccomp && first == SECCOMP_SET_MODE_STRICT);
    const bool is_filter = (is_prctl && second == SECCOMP_MODE_FILTER) ||
                           (number == SYS_seccomp && first == SECCOMP_SET_MODE_FILTER);
    if (!sj_recorder_is_armed()) {
        return true;
    }
    run_program(number, first, second, third, fourth, fifth);
    set_limit(number, first, second, third);
    if (is_strict) {
        return leave_for_strict_mode();
    }
    if (is_filter && third != 0) { /* a null filter only asks what the kernel supports */
        sj_recorder_confine();
    }
    return true;
}

static sj_status watch(uint64_t function, bool is_prctl, void (*gate)(void), uint64_t *resume,
                       sj_hooked_module *hook)
{
    const int32_t at = sj_arch_find_inner_call(function, is_prctl);
    return at >= 0 ? sj_gate_put(function + (uint64_t)at, gate, resume, hook) : SJ_EUNSUPPORTED;
}

sj_status sj_filters_follow(void)
{
    is_attached = sojourn_agent_state.prepare_only != 0;
    const sj_status prctl_status = watch((uint64_t)(uintptr_t)&prctl, true, sj_arch_prctl_entry,
                                         &sj_arch_prctl_resume, &hooks[0]);
    const sj_status status = watch((uint64_t)(uintptr_t)&syscall, false, sj_arch_syscall_entry,
                                   &sj_arch_syscall_resume, &hooks[1]);
    return status != SJ_OK ? status : prctl_status;
}
