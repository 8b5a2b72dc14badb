#include "agent/livepatch/heap_watch.h"

#include "agent/livepatch/remote_request.h"

static bool is_of_heap(void *context, const sj_hook_change *change)
{
    (void)context;
    return change->function >= SJ_HOOK_HEAP_ALLOCATING;
}

static sj_status write_entries(sj_tracee *target, sj_remote_agent *agent, sj_error *error)
{
    uint64_t start_ns = 0;
    sj_text_patch_report done = {0};
    SJ_TRY(sj_remote_agent_stop_current(target, agent, &start_ns, error));
    const sj_status status = sj_remote_agent_change(target, agent, true, is_of_heap, NULL, &done);
    sj_tracee_resume_all(target);
    if (status != SJ_OK || done.refused != 0) {
        return sj_fail(error, status != SJ_OK ? status : SJ_EUNSUPPORTED,
                       "zombies: the allocator's entries cannot be patched now in process %d",
                       (int)target->pid);
    }
    return SJ_OK;
}

static sj_status watch_objects(sj_tracee *target, sj_remote_agent *agent, sj_error *error)
{
    SJ_TRY(sj_remote_agent_await(target, agent, error));
    return sj_remote_agent_request(target, agent, SJ_AGENT_STATE_WATCH_HEAP, error);
}

static sj_status watch(sj_tracee *target, sj_remote_agent *agent, sj_error *error)
{
    SJ_TRY(watch_objects(target, agent, error));
    if (atomic_load(&agent->residue.is_whole) != 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_remote_agent_reload(target, agent));
    if (agent->state.heap_residue == 0) {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "zombies: process %d cannot be watched, see zombie_accounts",
                       (int)target->pid);
    }
    return write_entries(target, agent, error);
}

static sj_status shrink(sj_tracee *target, sj_remote_agent *agent, sj_error *error)
{
    SJ_TRY(sj_remote_agent_await(target, agent, error));
    if (atomic_load(&agent->residue.is_whole) == 0 && agent->state.has_objects == 0) {
        return sj_fail(error, SJ_EUNSUPPORTED, "process %d is not watched for freed memory",
                       (int)target->pid);
    }
    return sj_remote_agent_request(target, agent, SJ_AGENT_STATE_SHRINK_HEAP, error);
}

static sj_status
with_agent(pid_t pid, sj_status (*act)(sj_tracee *target, sj_remote_agent *agent, sj_error *error),
           sj_error *error)
{
    sj_tracee target;
    sj_remote_agent agent = {0};
    sj_tracee_lock();
    sj_status status = sj_tracee_open(pid, &target, error);
    if (status == SJ_OK) {
        status = act(&target, &agent, error);
        sj_remote_agent_deinit(&agent);
        sj_tracee_close(&target);
    }
    sj_tracee_unlock();
    return status;
}

sj_status sj_heap_watch(pid_t pid, bool with_heap, sj_error *error)
{
    return with_agent(pid, with_heap ? watch : watch_objects, error);
}

sj_status sj_heap_shrink(pid_t pid, sj_error *error)
{
    return with_agent(pid, shrink, error);
}
