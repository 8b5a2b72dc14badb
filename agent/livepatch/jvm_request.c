#include "agent/livepatch/jvm_request.h"

#include "agent/host/clock.h"
#include "agent/livepatch/remote_request.h"

#include <time.h>

enum { PAUSE_NS = 1000000 };

#define SECOND_NS UINT64_C(1000000000)
#define TASK_NS (180 * SECOND_NS)
#define LEAVE_NS (60 * SECOND_NS)

static bool is_busy(const sj_remote_agent *agent)
{
    const uint32_t state = atomic_load(&agent->state.jvm);
    return state == SJ_AGENT_JVM_BUSY || state == SJ_AGENT_JVM_SELECTING;
}

/* Polls the agent's state until its thread has done the task. It does not trace the process, so the
 * lock of tracees is free, and other threads need not wait for a JVM. */
static sj_status wait_until_done(const sj_tracee *target, sj_remote_agent *agent, uint64_t limit_ns)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const uint64_t deadline_ns = sj_clock_ns(CLOCK_MONOTONIC) + limit_ns;
    for (;;) {
        const sj_status status = sj_remote_agent_reload(target, agent);
        if (status != SJ_OK && status != SJ_EAGAIN) {
            return sj_tracee_is_there(target) ? status : SJ_ECLOSED;
        }
        if (status == SJ_OK && !is_busy(agent)) {
            return SJ_OK;
        }
        if (sj_clock_ns(CLOCK_MONOTONIC) >= deadline_ns) {
            return SJ_ETIMEDOUT;
        }
        nanosleep(&pause, NULL);
    }
}

static sj_status explain(const sj_tracee *target, sj_status status, sj_error *error)
{
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "the classes of the JVM in process %d: %s",
                                     (int)target->pid, sj_status_text(status));
}

/* Starts a task. Returns false if another one is running: the agent keeps only one, so a second
 * would be lost. */
static bool begin_now(sj_tracee *target, sj_remote_agent *agent, const char *task,
                      sj_status *status, sj_error *error)
{
    sj_tracee_lock();
    *status = sj_remote_agent_await(target, agent, error);
    const bool begins = *status != SJ_OK || !is_busy(agent);
    if (*status == SJ_OK && begins) {
        *status = sj_remote_agent_request(target, agent, task, error);
    }
    sj_tracee_unlock();
    return begins;
}

static sj_status begin(sj_tracee *target, sj_remote_agent *agent, const char *task, sj_error *error)
{
    sj_status status = SJ_OK;
    while (!begin_now(target, agent, task, &status, error)) {
        SJ_TRY(explain(target, wait_until_done(target, agent, TASK_NS), error));
        sj_remote_agent_deinit(agent);
    }
    return status;
}

static sj_status run_task(pid_t pid, const char *task, bool *is_joined, sj_error *error)
{
    sj_tracee target;
    sj_remote_agent agent = {0};
    *is_joined = false;
    SJ_TRY(sj_tracee_open(pid, &target, error));
    sj_status status = begin(&target, &agent, task, error);
    if (status == SJ_OK) {
        status = explain(&target, wait_until_done(&target, &agent, TASK_NS), error);
    }
    *is_joined = status == SJ_OK && atomic_load(&agent.state.jvm) == SJ_AGENT_JVM_JOINED;
    sj_remote_agent_deinit(&agent);
    sj_tracee_close(&target);
    return status;
}

sj_status sj_jvm_join(pid_t pid, bool *is_joined, sj_error *error)
{
    return run_task(pid, SJ_AGENT_STATE_JOIN_JVM, is_joined, error);
}

sj_status sj_jvm_select(pid_t pid, bool *is_joined, sj_error *error)
{
    return run_task(pid, SJ_AGENT_STATE_SELECT_JVM, is_joined, error);
}

sj_status sj_jvm_leave(sj_tracee *target, sj_remote_agent *agent, sj_error *error)
{
    SJ_TRY(explain(target, wait_until_done(target, agent, LEAVE_NS), error));
    if (atomic_load(&agent->state.jvm) != SJ_AGENT_JVM_JOINED) {
        return SJ_OK;
    }
    SJ_TRY(sj_remote_agent_request(target, agent, SJ_AGENT_STATE_LEAVE_JVM, error));
    SJ_TRY(explain(target, wait_until_done(target, agent, LEAVE_NS), error));
    return atomic_load(&agent->state.jvm) == SJ_AGENT_JVM_NONE
               ? SJ_OK
               : sj_fail(error, SJ_EAGAIN, "the JVM of process %d keeps its probes",
                         (int)target->pid);
}
