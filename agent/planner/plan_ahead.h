/* Plans a module into the cache in the background. */
#ifndef SJ_AGENT_PLANNER_PLAN_AHEAD_H
#define SJ_AGENT_PLANNER_PLAN_AHEAD_H

#include "agent/planner/planner.h"

typedef struct sj_plan_ahead sj_plan_ahead;

/* Starts to plan a module for the cache of `options`, on a thread that blocks all signals. Two
 * modules are planned at once; others start when one of these has ended. The texts of `options`,
 * except the path, are borrowed until sj_plan_ahead_free. The plan is not filtered. Returns
 * SJ_ENOMEM, or SJ_ELIMIT if the path is too long. */
SJ_MUST_CHECK sj_status sj_plan_ahead_start(const sj_planner_options *options,
                                            sj_plan_ahead **ahead);

/* True if it plans the module at `path`; NULL is allowed. */
bool sj_plan_ahead_is_of(const sj_plan_ahead *ahead, const char *path);

/* Returns the path of the module; borrowed. */
const char *sj_plan_ahead_path(const sj_plan_ahead *ahead);

/* Waits for the plan, up to `most_ms`. Returns true if the plan exists or has failed.
 * Thread-safe. */
bool sj_plan_ahead_wait(sj_plan_ahead *ahead, uint32_t most_ms);

/* Waits for the plan and frees it. A plan that has not started, because two others are being made,
 * is cancelled. NULL is allowed. */
void sj_plan_ahead_free(sj_plan_ahead *ahead);

#endif
