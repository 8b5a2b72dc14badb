#include "agent/recording/late_hooks.h"

#include "agent/livepatch/transition.h"
#include "agent/recording/each_process.h"

#include <signal.h>

/* maximum time of one wait for a JVM that changes classes for the budget */
#define BUDGET_WAIT_NS UINT64_C(1000000000)

typedef struct late_hooks {
    sj_pipeline *pipeline;
    sj_function_states states;
    bool have_followed;
} late_hooks;

static void hook_process(void *context, pid_t pid)
{
    late_hooks *hooking = context;
    sj_pipeline *pipeline = hooking->pipeline;
    sj_registry *registry = pipeline->registry;
    uint64_t process = 0;
    sj_error error = {0};
    sj_transition_report report;
    sj_unhooked_set *freed = NULL;
    size_t reported = 0;
    if (sj_registry_find_process(registry, pid, &process) != SJ_OK) {
        return;
    }
    (void)!sj_drain_share_freed(pipeline->drain, process, &freed);
    const sj_status status =
        sj_transition_process(registry, process, pid, &hooking->states, freed, &report, &error);
    sj_unhooked_set_release(freed);
    (void)!sj_drain_catch_up(pipeline->drain, process);
    (void)!sj_registry_report_missed(registry, process, report.missed, report.missed_count,
                                     &reported);
    sj_transition_report_deinit(&report);
    hooking->have_followed = hooking->have_followed && (status == SJ_OK || kill(pid, 0) != 0);
}

void sj_late_hooks_apply(sj_pipeline *pipeline)
{
    const sj_program *program = pipeline->options.program;
    late_hooks hooking = {.pipeline = pipeline, .have_followed = true};
    if ((program != NULL && program->agent != NULL) || !sj_registry_has_late(pipeline->registry)) {
        return;
    }
    while (!sj_drain_suspend_budget(pipeline->drain, BUDGET_WAIT_NS)) {
        /* ends when the JVM has finished its change */
    }
    if (sj_registry_begin_late(pipeline->registry, &hooking.states) == SJ_OK) {
        sj_each_process(pipeline->registry, hook_process, &hooking);
        sj_registry_settle_late(pipeline->registry, hooking.have_followed);
    }
    sj_function_states_deinit(&hooking.states);
    sj_drain_resume_budget(pipeline->drain);
}
