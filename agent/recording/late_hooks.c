#include "agent/recording/late_hooks.h"

#include "agent/livepatch/transition.h"
#include "agent/recording/each_process.h"

#include <signal.h>

/* maximum time of one wait for a JVM that changes classes for the budget */
#define LOOK_NS UINT64_C(1000000000)

typedef struct late_hooks {
    sj_recording *recording;
    sj_function_states states;
    bool have_followed;
} late_hooks;

static void hook_process(void *context, pid_t pid)
{
    late_hooks *self = context;
    sj_recording *recording = self->recording;
    sj_registry *registry = recording->registry;
    uint64_t process = 0;
    sj_error error = {0};
    sj_transition_report report;
    sj_unhooked_set *freed = NULL;
    size_t reported = 0;
    if (sj_registry_find_process(registry, pid, &process) != SJ_OK) {
        return;
    }
    (void)!sj_drain_share_freed(recording->drain, process, &freed);
    const sj_status status =
        sj_transition_process(registry, process, pid, &self->states, freed, &report, &error);
    sj_unhooked_set_release(freed);
    (void)!sj_drain_catch_up(recording->drain, process);
    (void)!sj_registry_report_missed(registry, process, report.missed, report.missed_count,
                                     &reported);
    sj_transition_report_deinit(&report);
    self->have_followed = self->have_followed && (status == SJ_OK || kill(pid, 0) != 0);
}

void sj_late_hooks_apply(sj_recording *recording)
{
    const sj_program *program = recording->options.program;
    late_hooks self = {.recording = recording, .have_followed = true};
    if ((program != NULL && program->agent != NULL) || atomic_load(&recording->is_full) ||
        !sj_registry_has_late(recording->registry)) {
        return;
    }
    while (!sj_drain_suspend_budget(recording->drain, LOOK_NS)) {
        /* the wait ends when the JVM has finished */
    }
    if (sj_registry_begin_late(recording->registry, &self.states) == SJ_OK) {
        sj_each_process(recording->registry, hook_process, &self);
        sj_registry_settle_late(recording->registry, self.have_followed);
    }
    sj_function_states_deinit(&self.states);
    sj_drain_resume_budget(recording->drain);
}
