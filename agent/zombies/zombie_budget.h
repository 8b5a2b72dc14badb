/* The overhead budget of a process that is watched for freed memory. While watching costs more than
 * the budget allows, fewer allocations are guarded, fewer frees are delayed, and histories of
 * objects are paused. The program itself measures these costs (sj_zombie_counters). */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIE_BUDGET_H
#define SJ_AGENT_ZOMBIES_ZOMBIE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* CPU time of an interval, in ns. */
typedef struct sj_zombie_costs {
    uint64_t program; /* All CPU time of the process. */
    uint64_t heap;    /* The part that guarded blocks took. */
    uint64_t history; /* The part that histories took. */
    uint64_t delayed_free;
} sj_zombie_costs;

/* The present decision. A zeroed budget watches everything. */
typedef struct sj_zombie_budget {
    uint32_t shift;         /* One allocation in `one_in << shift` is guarded. */
    uint32_t delayed_shift; /* One of `1 << delayed_shift` frees of a thread is delayed. */
    bool is_paused;         /* True if histories are paused. */
    /* How many checks in a row, since the last change, have found most of the budget free. */
    uint32_t calm;
    /* How many such checks precede the next attempt to watch more. 0: the minimum. */
    uint32_t patience;
    bool is_attempt; /* True if the last change was such an attempt. */
} sj_zombie_budget;

enum { SJ_ZOMBIE_SHIFT_MOST = 20 };

/* Decides after an interval. `per_mille` is the allowed share of the program's CPU time. Returns
 * true if the decision changed. A failed attempt to watch more doubles the wait before the next
 * one. */
bool sj_zombie_budget_check(sj_zombie_budget *budget, const sj_zombie_costs *costs,
                            uint32_t per_mille);

#endif
