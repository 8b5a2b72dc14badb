#include "agent/livepatch/remote_request.h"

#include "agent/ptrace/safepoint.h"

#include <time.h>

enum { ATTEMPTS = 100, PAUSE_NS = 2000000 };

sj_status sj_remote_agent_await(const sj_tracee *target, sj_remote_agent *agent, sj_error *error)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    sj_status status = sj_remote_agent_find(target, agent);
    for (uint32_t i = 0; i < ATTEMPTS && status == SJ_EAGAIN; i++) {
        nanosleep(&pause, NULL);
        status = sj_remote_agent_reload(target, agent);
    }
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "no agent was found in process %d: %s",
                                     (int)target->pid, sj_status_text(status));
}

sj_status sj_remote_agent_request(sj_tracee *target, const sj_remote_agent *agent, const char *name,
                                  sj_error *error)
{
    sj_unwinder *unwinder = NULL;
    size_t thread = 0;
    if (sj_unwinder_new(target, &unwinder) != SJ_OK) {
        return sj_fail(error, SJ_EIO, "the modules of process %d cannot be read", (int)target->pid);
    }
    sj_status status = sj_safepoint_find(target, unwinder, &thread);
    if (status == SJ_OK) {
        status = sj_remote_agent_call(target, agent, thread, name);
        sj_tracee_resume_all(target);
    }
    sj_unwinder_free(unwinder);
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "process %d cannot prepare more hooks now: %s",
                                     (int)target->pid, sj_status_text(status));
}
