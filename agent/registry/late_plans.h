/* Plans that take longer than a program can wait. Separate threads write them to the cache while
 * the programs run. When a plan is ready, the recorder hooks the module in the running programs. */
#ifndef SJ_AGENT_REGISTRY_LATE_PLANS_H
#define SJ_AGENT_REGISTRY_LATE_PLANS_H

#include "agent/planner/plan_ahead.h"

#include <stddef.h>

typedef struct sj_late_plan {
    sj_plan_ahead *ahead;
    bool is_owned;    /* false: the recording owns `ahead` */
    uint64_t late_ns; /* when the first program continued without the plan; 0: none did */
    bool is_planned;  /* the registry has registered the module since `late_ns` */
    uint32_t tries;   /* number of attempts to hook the module in the programs */
    bool is_settled;  /* the result in the programs was reported */
} sj_late_plan;

typedef struct sj_late_plans {
    sj_late_plan *items; /* started and not yet freed */
    size_t count;
    size_t capacity;
} sj_late_plans;

/* The progress of a module's plan. */
typedef enum sj_plan_progress {
    /* the plan is in the cache, or cannot be made there: sj_plan_make returns the reason */
    SJ_PLAN_MADE,
    SJ_PLAN_BEING_MADE,
    SJ_PLAN_LATE /* the process continues without the plan */
} sj_plan_progress;

/* Returns the progress of the plan for `options` in the cache. Starts to plan the module unless a
 * thread already plans it or the cache has the plan. `ahead` is the planning of the program itself;
 * NULL: none.
 *
 * The process has waited since `asked_ns` (CLOCK_MONOTONIC). It may wait `*left_ns` for all its
 * plans together. When the wait for this plan ends, the function subtracts its length from
 * `*left_ns`. A plan is late at once if another process has already continued without it and it is
 * not in the cache. Does not block. Not thread-safe. */
sj_plan_progress sj_late_plans_ask(sj_late_plans *late, sj_plan_ahead *ahead,
                                   const sj_planner_options *options, uint64_t asked_ns,
                                   uint64_t *left_ns);

/* Stores that the registry has registered the module at `path`. Not thread-safe. */
void sj_late_plans_note_planned(sj_late_plans *late, const char *path);

/* True if the planning has ended after a program had continued without the plan, and the plan is
 * not settled. Returns false after too many attempts to hook the module. Any thread. */
bool sj_late_plan_is_ready(const sj_late_plan *plan);

/* Waits until the plans that are being made are complete, and frees everything. Safe on a zeroed
 * struct. */
void sj_late_plans_deinit(sj_late_plans *late);

#endif
