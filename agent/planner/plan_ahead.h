/* Plans a module into the cache in the background. */
#ifndef SJ_AGENT_PLANNER_PLAN_AHEAD_H
#define SJ_AGENT_PLANNER_PLAN_AHEAD_H

#include "agent/planner/planner.h"

typedef struct sj_plan_ahead sj_plan_ahead;

/* Starts a thread that plans a module and stores the plan in the cache of `options`. The thread
 * blocks all signals. At most two modules are planned at once; further ones wait. The strings of
 * `options`, except the module's path, are borrowed until sj_plan_ahead_free. Returns SJ_ENOMEM, or
 * SJ_ELIMIT if the path is too long. */
SJ_MUST_CHECK sj_status sj_plan_ahead_start(const sj_planner_options *options,
                                            sj_plan_ahead **ahead);

/* True if `ahead` plans the module at `path`. `ahead` may be NULL. */
bool sj_plan_ahead_is_of(const sj_plan_ahead *ahead, const char *path);

/* Returns the path of the module; borrowed. */
const char *sj_plan_ahead_path(const sj_plan_ahead *ahead);

/* Waits up to `most_ms` for the plan. Returns true if the plan exists or has failed.
 * Thread-safe. */
bool sj_plan_ahead_wait(sj_plan_ahead *ahead, uint32_t most_ms);

/* Waits for the plan and frees `ahead`, which may be NULL. If the plan waits for other plans to
 * end, cancels it. */
void sj_plan_ahead_free(sj_plan_ahead *ahead);

#endif
