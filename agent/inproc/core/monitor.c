#include "agent/inproc/core/monitor.h"

#include "agent/abi/agent_state.h"

#include <stddef.h>

#define SJ_DECLARE(name) extern const sj_monitor sj_monitor_##name;
#define SJ_ROW(name) &sj_monitor_##name,

SJ_MONITORS(SJ_DECLARE)

static const sj_monitor *const monitors[] = {SJ_MONITORS(SJ_ROW)};

enum { MONITORS = sizeof(monitors) / sizeof(monitors[0]) };

static uint32_t chosen_bits;
static uint32_t started_bits;

void sj_monitors_prepare(uint32_t runtimes)
{
    for (uint32_t i = 0; i < MONITORS; i++) {
        if ((runtimes & monitors[i]->bit) != 0 && monitors[i]->prepare != NULL) {
            monitors[i]->prepare();
        }
    }
}

void sj_monitors_rejoin(uint32_t runtimes)
{
    for (uint32_t i = 0; i < MONITORS; i++) {
        if ((runtimes & monitors[i]->bit) != 0 && monitors[i]->rejoin != NULL) {
            monitors[i]->rejoin();
        }
    }
}

void sj_monitors_choose(uint32_t runtimes)
{
    chosen_bits = runtimes;
}

uint32_t sj_monitors_chosen(void)
{
    return chosen_bits;
}

/* Starts a monitor. `binding` is set before the start, because a tracer may come while references
 * are being rebound. It then has to restore them. */
static void start_monitor(const sj_monitor *monitor, bool *is_bound)
{
    if (monitor->stop != NULL) {
        atomic_store(&sojourn_agent_state.binding, SJ_AGENT_STATE_BOUND);
    }
    if (monitor->start == NULL || monitor->start()) {
        started_bits |= monitor->bit;
        *is_bound = *is_bound || monitor->stop != NULL;
    } else if (monitor->stop != NULL && !*is_bound) {
        atomic_store(&sojourn_agent_state.binding, SJ_AGENT_STATE_UNBOUND);
    }
}

void sj_monitors_start(bool is_attached)
{
    bool is_bound = false;
    for (uint32_t i = 0; i < MONITORS; i++) {
        if ((chosen_bits & monitors[i]->bit) != 0 && (!is_attached || monitors[i]->stop != NULL)) {
            start_monitor(monitors[i], &is_bound);
        }
    }
}

void sj_monitors_start_late(uint32_t runtimes)
{
    bool is_bound = atomic_load(&sojourn_agent_state.binding) == SJ_AGENT_STATE_BOUND;
    for (uint32_t i = 0; i < MONITORS; i++) {
        if ((runtimes & monitors[i]->bit) != 0) {
            start_monitor(monitors[i], &is_bound);
        }
    }
}

void sj_monitors_on_modules(void)
{
    for (uint32_t i = 0; i < MONITORS; i++) {
        const bool is_waiting =
            monitors[i]->waits_for_module && (chosen_bits & monitors[i]->bit) != 0;
        const bool is_on =
            (started_bits & monitors[i]->bit) != 0 || monitors[i]->start == NULL || is_waiting;
        if (is_on && monitors[i]->on_modules != NULL) {
            monitors[i]->on_modules();
        }
    }
}

void sj_monitors_after_fork(void)
{
    for (uint32_t i = 0; i < MONITORS; i++) {
        if (monitors[i]->after_fork != NULL) {
            monitors[i]->after_fork();
        }
    }
}

bool sj_monitors_stop(void)
{
    bool is_returned_to = false;
    for (uint32_t i = 0; i < MONITORS; i++) {
        if ((started_bits & monitors[i]->bit) != 0 && monitors[i]->stop != NULL) {
            monitors[i]->stop();
            started_bits &= ~(uint32_t)monitors[i]->bit;
            is_returned_to = is_returned_to || monitors[i]->has_thunk;
        }
    }
    return is_returned_to;
}
