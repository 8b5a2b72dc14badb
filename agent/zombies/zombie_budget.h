/* The overhead budget of a process that is watched for freed memory: allocations are sampled more
 * rarely, freed blocks are quarantined more rarely, and histories of objects are not kept, while
 * watching costs more than the budget allows. What it costs is measured inside the program
 * (sj_zombie_counters). */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIE_BUDGET_H
#define SJ_AGENT_ZOMBIES_ZOMBIE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* CPU time of a stretch of time, ns. */
typedef struct sj_zombie_costs {
    uint64_t program; /* all of the process's */
    uint64_t heap;    /* of it: what guarded blocks took */
    uint64_t history; /* what histories took */
    uint64_t quarantine;
} sj_zombie_costs;

/* What was decided; zeroed at first. */
typedef struct sj_zombie_budget {
    uint32_t shift;            /* one allocation in `one_in << shift` is guarded */
    uint32_t quarantine_shift; /* of `1 << quarantine_shift` frees of a thread one is quarantined */
    bool is_paused;            /* histories are not kept */
    uint32_t calm;     /* looks since the last change, in a row, that left most of the budget */
    uint32_t patience; /* such looks before the next attempt to watch more; 0: the least */
    bool is_attempt;   /* the last change was one */
} sj_zombie_budget;

enum { SJ_ZOMBIE_SHIFT_MOST = 20 };

/* sj_zombie_budget_look decides after a stretch of time. `per_mille`: of the program's CPU time.
 * Returns whether something changed. An attempt that fails doubles the time to the next. */
bool sj_zombie_budget_look(sj_zombie_budget *budget, const sj_zombie_costs *costs,
                           uint32_t per_mille);

#endif
