#include "agent/livepatch/toggle.h"

#include "agent/host/clock.h"
#include "agent/livepatch/remote_agent.h"

#include <stdlib.h>
#include <time.h>

typedef struct toggling {
    const uint32_t *functions; /* Sorted. NULL: all. */
    size_t count;
    bool on;
    sj_unhooked_set *freed; /* NULL: none. */
} toggling;

static int compare_ids(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* True if the change is about one of the functions to toggle. Function 0 is the loader's hook,
 * which stays as long as anything may be recorded. */
static bool is_listed(void *context, const sj_hook_change *change)
{
    const toggling *wanted = context;
    if (change->function == 0) {
        return false;
    }
    return wanted->functions == NULL || bsearch(&change->function, wanted->functions, wanted->count,
                                                sizeof(uint32_t), compare_ids) != NULL;
}

/* Records unhooked functions before the change, because a failure may leave some of them unhooked.
 * Records hooked functions, and those that may still be hooked, after it. */
static sj_status record_and_change(sj_tracee *target, sj_remote_agent *agent,
                                   const toggling *wanted, sj_text_patch_report *done)
{
    if (wanted->freed != NULL && !wanted->on) {
        sj_unhooked_set_add(wanted->freed, wanted->functions, wanted->count, sj_clock_ticks());
    }
    const sj_status status = sj_remote_agent_change(target, agent, wanted->on, is_listed,
                                                    (void *)(uintptr_t)wanted, done);
    const bool may_have_exits = wanted->on || status != SJ_OK || done->refused != 0;
    if (wanted->freed != NULL && may_have_exits) {
        sj_unhooked_set_remove(wanted->freed, wanted->functions, wanted->count);
    }
    return status;
}

static sj_status toggle(sj_tracee *target, sj_remote_agent *agent, const toggling *wanted,
                        sj_hook_functions_report *report, sj_error *error)
{
    sj_text_patch_report done = {0};
    uint64_t start_ns = 0;
    const sj_status found = sj_remote_agent_find(target, agent);
    if (found != SJ_OK && found != SJ_EAGAIN) {
        return sj_fail(error, found, "process %d is not recorded: %s", (int)target->pid,
                       found == SJ_ENOTFOUND ? "no agent is in it" : sj_status_text(found));
    }
    SJ_TRY(sj_remote_agent_stop_current(target, agent, &start_ns, error));
    report->threads = (uint32_t)target->count;
    const sj_status status = record_and_change(target, agent, wanted, &done);
    sj_tracee_resume_all(target);
    report->stopped_ns = sj_clock_ns(CLOCK_MONOTONIC) - start_ns;
    report->changed = done.changed;
    report->refused = done.refused;
    report->moved = done.moved;
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "the text of process %d cannot be written: %s",
                                     (int)target->pid, sj_status_text(status));
}

sj_status sj_hook_functions(pid_t pid, const uint32_t *functions, size_t count, bool on,
                            sj_unhooked_set *freed, sj_hook_functions_report *report,
                            sj_error *error)
{
    sj_tracee target;
    sj_remote_agent agent = {0};
    const toggling wanted = {.functions = functions, .count = count, .on = on, .freed = freed};
    *report = (sj_hook_functions_report){0};
    sj_tracee_lock();
    sj_status status = sj_tracee_open(pid, &target, error);
    if (status == SJ_OK) {
        status = toggle(&target, &agent, &wanted, report, error);
        sj_remote_agent_deinit(&agent);
        sj_tracee_close(&target);
    }
    sj_tracee_unlock();
    return status;
}
