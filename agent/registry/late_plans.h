/* Plans that take longer than a program can wait. They are made into the cache by threads of their
 * own, so that the next recording finds them. */
#ifndef SJ_AGENT_REGISTRY_LATE_PLANS_H
#define SJ_AGENT_REGISTRY_LATE_PLANS_H

#include "agent/planner/plan_ahead.h"

#include <stddef.h>

typedef struct sj_late_plans {
    sj_plan_ahead **items; /* begun and not yet freed */
    size_t count;
    size_t capacity;
} sj_late_plans;

/* sj_late_plans_wait waits at most `most_ms` until the cache of `options` has the plan of their
 * module, which it has planned unless that is going on. `ahead` is what plans the program; NULL:
 * nothing does. Returns false when the plan is not made by then; true also when it cannot be made
 * here: sj_plan_make says why. Blocking, one thread. */
bool sj_late_plans_wait(sj_late_plans *late, sj_plan_ahead *ahead,
                        const sj_planner_options *options, uint32_t most_ms);

/* sj_late_plans_deinit waits for the plans that are not made yet; safe on a zeroed one. */
void sj_late_plans_deinit(sj_late_plans *late);

#endif
