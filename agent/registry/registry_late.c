/* Modules whose plan became ready while the program ran without it. */
#include "agent/registry/registry_internal.h"

#include "agent/host/clock.h"
#include "agent/session/json_report.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Reports for how long the calls of a module are missing. If the spool is full, the store finds a
 * gap in the numbers of reports. */
static void report_late(sj_registry *registry, const sj_late_plan *plan, uint64_t missed_ns,
                        bool is_hooked)
{
    json_t *json = json_pack("{s:s, s:I, s:b}", "module", sj_plan_ahead_path(plan->ahead),
                             "missed_ns", (json_int_t)missed_ns, "is_hooked", is_hooked ? 1 : 0);
    const sj_report report = {
        .ticks = sj_clock_ticks(), .monitor = "recorder", .kind = "late_module"};
    (void)!sj_json_report_send(registry->options.writer, report, json);
}

/* Counts and reports one late plan. The summary names the first module without hooks, else the
 * first module. */
static void settle_plan(sj_registry *registry, sj_late_plan *plan, bool is_hooked)
{
    sj_registry_counters *counters = &registry->counters;
    const uint64_t missed_ns = sj_clock_ns(CLOCK_MONOTONIC) - plan->late_ns;
    const bool is_first = is_hooked ? counters->late_plans == 0 : counters->late_unhooked == 0;
    plan->is_settled = true;
    report_late(registry, plan, missed_ns, is_hooked);
    counters->late_plans++;
    counters->late_unhooked += !is_hooked;
    if (is_first) {
        snprintf(counters->late_module, sizeof(counters->late_module), "%s",
                 sj_plan_ahead_path(plan->ahead));
        counters->late_missed_ns = missed_ns;
    }
}

bool sj_registry_has_late(sj_registry *registry)
{
    bool has_late = false;
    if (pthread_mutex_trylock(&registry->mutex) != 0) {
        return false; /* a program waits for a plan */
    }
    for (size_t i = 0; i < registry->late_plans.count; i++) {
        has_late = has_late || sj_late_plan_is_ready(&registry->late_plans.items[i]);
    }
    pthread_mutex_unlock(&registry->mutex);
    return has_late;
}

sj_status sj_registry_begin_late(sj_registry *registry, sj_function_states *states)
{
    pthread_mutex_lock(&registry->mutex);
    *states = (sj_function_states){.states = calloc(registry->next_function, 1),
                                   .count = registry->next_function,
                                   .asks_agents = true};
    pthread_mutex_unlock(&registry->mutex);
    return states->states != NULL ? SJ_OK : SJ_ENOMEM;
}

void sj_registry_settle_late(sj_registry *registry, bool have_followed)
{
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; i < registry->late_plans.count; i++) {
        sj_late_plan *plan = &registry->late_plans.items[i];
        if (!sj_late_plan_is_ready(plan)) {
            continue;
        }
        plan->tries++;
        if (have_followed && plan->is_planned) {
            settle_plan(registry, plan, true);
        }
    }
    pthread_mutex_unlock(&registry->mutex);
}

void sj_registry_end_late(sj_registry *registry)
{
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; i < registry->late_plans.count; i++) {
        sj_late_plan *plan = &registry->late_plans.items[i];
        if (plan->late_ns != 0 && !plan->is_settled) {
            settle_plan(registry, plan, false);
        }
    }
    pthread_mutex_unlock(&registry->mutex);
}
