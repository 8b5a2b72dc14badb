/* Plans that take longer than a program can wait. Threads of their own make them into the cache;
 * the programs run on meanwhile, and get the hooks when the plan is made. */
#ifndef SJ_AGENT_REGISTRY_LATE_PLANS_H
#define SJ_AGENT_REGISTRY_LATE_PLANS_H

#include "agent/planner/plan_ahead.h"

#include <stddef.h>

typedef struct sj_late_plan {
    sj_plan_ahead *ahead;
    bool is_owned;    /* else the recording's */
    uint64_t late_ns; /* when the first program ran on without the plan; 0: none did */
    bool is_planned;  /* the registry has the module since */
    uint32_t tries;   /* to give its hooks to the programs */
    bool is_settled;  /* it was reported whether the programs have its hooks */
} sj_late_plan;

typedef struct sj_late_plans {
    sj_late_plan *items; /* begun and not yet freed */
    size_t count;
    size_t capacity;
} sj_late_plans;

/* How far the plan of a module is. */
typedef enum sj_plan_progress {
    SJ_PLAN_MADE, /* it is in the cache, or cannot be made there: sj_plan_make says why */
    SJ_PLAN_BEING_MADE,
    SJ_PLAN_LATE /* the process runs on without it */
} sj_plan_progress;

/* sj_late_plans_ask returns how far the plan for the cache of `options` is. Starts to plan the
 * module unless that has begun. `ahead` is what plans the program; NULL: nothing does. The process
 * has waited since `asked_ns` (CLOCK_MONOTONIC). It may wait `*left_ns` for all its plans; when
 * this wait ends, its length is subtracted from `*left_ns`. A plan that another process has not got
 * in time, or that was made late and could not be kept, is late at once. Does not block. One
 * thread. */
sj_plan_progress sj_late_plans_ask(sj_late_plans *late, sj_plan_ahead *ahead,
                                   const sj_planner_options *options, uint64_t asked_ns,
                                   uint64_t *left_ns);

/* sj_late_plans_note_planned notes that the registry has the module of `path`. One thread. */
void sj_late_plans_note_planned(sj_late_plans *late, const char *path);

/* sj_late_plan_is_ready returns true if the plan has been made, a program ran on without it, it is
 * not settled and there were not too many tries. Any thread. */
bool sj_late_plan_is_ready(const sj_late_plan *plan);

/* sj_late_plans_deinit waits for the plans that are not made yet; safe on a zeroed one. */
void sj_late_plans_deinit(sj_late_plans *late);

#endif
