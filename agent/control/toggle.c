#include "agent/control/toggle.h"

#include "agent/control/clock.h"
#include "agent/control/remote_agent.h"

#include <stdlib.h>
#include <time.h>

typedef struct id_list {
    const uint32_t *functions; /* sorted; NULL: all */
    size_t count;
} id_list;

static int compare_ids(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* The loader's hook (function 0) is not a function: it stays while anything may be recorded. */
static bool is_listed(void *context, const sj_hook_change *change)
{
    const id_list *list = context;
    if (change->function == 0) {
        return false;
    }
    return list->functions == NULL || bsearch(&change->function, list->functions, list->count,
                                              sizeof(uint32_t), compare_ids) != NULL;
}

static sj_status toggle(sj_target *target, sj_remote_agent *agent, const id_list *list, bool on,
                        sj_toggle_report *report, sj_error *error)
{
    sj_text_patch_report done;
    uint64_t start_ns = 0;
    const sj_status found = sj_remote_agent_find(target, agent);
    if (found != SJ_OK && found != SJ_EAGAIN) {
        return sj_fail(error, found, "process %d is not recorded: %s", (int)target->pid,
                       found == SJ_ENOTFOUND ? "no agent is in it" : sj_status_text(found));
    }
    SJ_TRY(sj_remote_agent_stop_current(target, agent, &start_ns, error));
    report->threads = (uint32_t)target->count;
    report->ticks = sj_clock_ticks();
    const sj_status status =
        sj_remote_agent_change(target, agent, on, is_listed, (void *)(uintptr_t)list, &done);
    sj_target_resume_all(target);
    report->stopped_ns = sj_clock_ns(CLOCK_MONOTONIC) - start_ns;
    report->changed = done.changed;
    report->refused = done.refused;
    report->moved = done.moved;
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "the text of process %d cannot be written: %s",
                                     (int)target->pid, sj_status_text(status));
}

sj_status sj_toggle_functions(pid_t pid, const uint32_t *functions, size_t count, bool on,
                              sj_toggle_report *report, sj_error *error)
{
    sj_target target;
    sj_remote_agent agent = {0};
    const id_list list = {.functions = functions, .count = count};
    *report = (sj_toggle_report){0};
    sj_target_lock();
    sj_status status = sj_target_open(pid, &target, error);
    if (status == SJ_OK) {
        status = toggle(&target, &agent, &list, on, report, error);
        sj_remote_agent_deinit(&agent);
        sj_target_close(&target);
    }
    sj_target_unlock();
    return status;
}
