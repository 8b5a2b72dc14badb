/* The overhead budget of a process whose heap is monitored. While the monitor costs more than the
 * budget allows, it guards fewer allocations, delays fewer frees, or pauses the histories of
 * objects. The agent measures these costs in the program (sj_zombie_counters). */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIE_BUDGET_H
#define SJ_AGENT_ZOMBIES_ZOMBIE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* CPU time of an interval, in ns. */
typedef struct sj_zombie_costs {
    uint64_t program;      /* All CPU time of the process. */
    uint64_t heap;         /* The part for guarded blocks. */
    uint64_t history;      /* The part for histories of objects. */
    uint64_t delayed_free; /* The part for delayed frees. */
} sj_zombie_costs;

/* The current decision. A zeroed budget reduces nothing. */
typedef struct sj_zombie_budget {
    uint32_t shift;         /* One allocation in `one_in << shift` is guarded. */
    uint32_t delayed_shift; /* One of `1 << delayed_shift` frees of a thread is delayed. */
    bool is_paused;         /* True if histories are paused. */
    /* Number of consecutive checks, since the last change, that used at most a quarter of the
     * budget. */
    uint32_t calm;
    /* Value of `calm` at which the monitor next tries to undo a reduction; 0 for the minimum. */
    uint32_t patience;
    bool is_attempt; /* True if the last change undid a reduction. */
} sj_zombie_budget;

enum { SJ_ZOMBIE_SHIFT_MOST = 20 };

/* Updates the decision after an interval. `per_mille` is the allowed share of the program's CPU
 * time. Returns true if the decision changed. If undoing a reduction exceeds the budget, doubles
 * the wait before the next attempt. */
bool sj_zombie_budget_check(sj_zombie_budget *budget, const sj_zombie_costs *costs,
                            uint32_t per_mille);

#endif
