#include "agent/recording/late_hooks.h"

#include "agent/livepatch/transition.h"
#include "agent/recording/each_process.h"

#include <signal.h>

/* maximum time of one wait for a JVM that changes classes for the budget */
#define LOOK_NS UINT64_C(1000000000)

typedef struct late_hooks {
    sj_pipeline *pipeline;
    sj_function_states states;
    bool have_followed;
} late_hooks;

static void hook_process(void *context, pid_t pid)
{
    late_hooks *self = context;
    sj_pipeline *pipeline = self->pipeline;
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
        sj_transition_process(registry, process, pid, &self->states, freed, &report, &error);
    sj_unhooked_set_release(freed);
    (void)!sj_drain_catch_up(pipeline->drain, process);
    (void)!sj_registry_report_missed(registry, process, report.missed, report.missed_count,
                                     &reported);
    sj_transition_report_deinit(&report);
    self->have_followed = self->have_followed && (status == SJ_OK || kill(pid, 0) != 0);
}

void sj_late_hooks_apply(sj_pipeline *pipeline)
{
    const sj_program *program = pipeline->options.program;
    late_hooks self = {.pipeline = pipeline, .have_followed = true};
    if ((program != NULL && program->agent != NULL) || !sj_registry_has_late(pipeline->registry)) {
        return;
    }
    while (!sj_drain_suspend_budget(pipeline->drain, LOOK_NS)) {
        /* the wait ends when the JVM has finished */
    }
    if (sj_registry_begin_late(pipeline->registry, &self.states) == SJ_OK) {
        sj_each_process(pipeline->registry, hook_process, &self);
        sj_registry_settle_late(pipeline->registry, self.have_followed);
    }
    sj_function_states_deinit(&self.states);
    sj_drain_resume_budget(pipeline->drain);
}
