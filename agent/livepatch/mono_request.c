#include "agent/livepatch/mono_request.h"

#include "agent/livepatch/remote_request.h"

#include <time.h>

enum { ATTEMPTS = 50, PAUSE_NS = 2000000 };

/* Makes a thread of the process choose Mono's methods anew. The runtime serves only its own
 * threads, so another attempt may find one. */
static sj_status select_with(sj_tracee *target, sj_remote_agent *agent, sj_error *error)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (uint32_t i = 0; i < ATTEMPTS; i++) {
        SJ_TRY(sj_remote_agent_await(target, agent, error));
        SJ_TRY(sj_remote_agent_request(target, agent, SJ_AGENT_STATE_SELECT_MONO, error));
        const sj_status status = sj_remote_agent_reload(target, agent);
        if (status == SJ_OK && atomic_load(&agent->state.bind_again) == 0) {
            return SJ_OK;
        }
        nanosleep(&pause, NULL);
    }
    return sj_fail(error, SJ_EAGAIN, "mono: no thread of process %d could select methods again",
                   (int)target->pid);
}

sj_status sj_mono_select(pid_t pid, sj_error *error)
{
    sj_tracee target;
    sj_remote_agent agent = {0};
    sj_tracee_lock();
    sj_status status = sj_tracee_open(pid, &target, error);
    if (status == SJ_OK) {
        status = select_with(&target, &agent, error);
        sj_remote_agent_deinit(&agent);
        sj_tracee_close(&target);
    }
    sj_tracee_unlock();
    return status;
}
