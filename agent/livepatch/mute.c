#include "agent/livepatch/mute.h"

#include "agent/host/clock.h"
#include "agent/livepatch/remote_agent.h"

#include <time.h>

typedef struct muting {
    const uint32_t *functions;
    size_t count;
    bool is_muted;
    sj_unhooked_set *freed;
} muting;

static sj_status write_all(const sj_tracee *target, uint64_t table, const muting *wanted,
                           bool is_muted)
{
    const uint8_t byte = is_muted ? 1 : 0;
    for (size_t i = 0; i < wanted->count; i++) {
        if (wanted->functions[i] < SJ_AGENT_STATE_MUTED_FUNCTIONS) {
            SJ_TRY(sj_tracee_write(target, table + wanted->functions[i], &byte, 1));
        }
    }
    return SJ_OK;
}

/* Records muted functions before they are muted, like toggle.c. */
static sj_status write_and_record(const sj_tracee *target, uint64_t table, const muting *wanted)
{
    if (wanted->freed != NULL && wanted->is_muted) {
        sj_unhooked_set_add(wanted->freed, wanted->functions, wanted->count, sj_clock_ticks());
    }
    const sj_status status = write_all(target, table, wanted, wanted->is_muted);
    if (status != SJ_OK && wanted->is_muted) {
        (void)!write_all(target, table, wanted, false);
    }
    if (wanted->freed != NULL && (status != SJ_OK || !wanted->is_muted)) {
        sj_unhooked_set_remove(wanted->freed, wanted->functions, wanted->count);
    }
    return status;
}

static sj_status mute(sj_tracee *target, sj_remote_agent *agent, const muting *wanted,
                      uint64_t *stopped_ns, sj_error *error)
{
    const sj_status found = sj_remote_agent_find(target, agent);
    if (found != SJ_OK && found != SJ_EAGAIN) {
        return sj_fail(error, found, "process %d is not recorded: %s", (int)target->pid,
                       found == SJ_ENOTFOUND ? "no agent is in it" : sj_status_text(found));
    }
    if (agent->state.muted_functions == 0) {
        return sj_fail(error, SJ_EUNSUPPORTED, "the agent in process %d cannot mute methods",
                       (int)target->pid);
    }
    const uint64_t start_ns = sj_clock_ns(CLOCK_MONOTONIC);
    SJ_TRY(sj_tracee_stop_all(target, error));
    const sj_status status = write_and_record(target, agent->state.muted_functions, wanted);
    sj_tracee_resume_all(target);
    *stopped_ns = sj_clock_ns(CLOCK_MONOTONIC) - start_ns;
    return status == SJ_OK
               ? SJ_OK
               : sj_fail(error, status, "the memory of process %d cannot be written: %s",
                         (int)target->pid, sj_status_text(status));
}

sj_status sj_mute_functions(pid_t pid, const uint32_t *functions, size_t count, bool is_muted,
                            sj_unhooked_set *freed, uint64_t *stopped_ns, sj_error *error)
{
    sj_tracee target;
    sj_remote_agent agent = {0};
    const muting wanted = {
        .functions = functions, .count = count, .is_muted = is_muted, .freed = freed};
    *stopped_ns = 0;
    sj_tracee_lock();
    sj_status status = sj_tracee_open(pid, &target, error);
    if (status == SJ_OK) {
        status = mute(&target, &agent, &wanted, stopped_ns, error);
        sj_remote_agent_deinit(&agent);
        sj_tracee_close(&target);
    }
    sj_tracee_unlock();
    return status;
}
