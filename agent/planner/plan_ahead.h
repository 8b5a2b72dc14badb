/* The plan of a module, made into the cache while other things are done. */
#ifndef SJ_AGENT_PLANNER_PLAN_AHEAD_H
#define SJ_AGENT_PLANNER_PLAN_AHEAD_H

#include "agent/planner/planner.h"

typedef struct sj_plan_ahead sj_plan_ahead;

/* sj_plan_ahead_start begins to plan a module for the cache of `options`, on a thread of its own
 * that takes no signals. Two are planned at once; others begin when one of these has ended. Texts
 * of `options` but the path are borrowed until sj_plan_ahead_free; what is wanted of the plan is
 * left to whoever takes it from the cache. SJ_ENOMEM; SJ_ELIMIT: the path is too long. */
SJ_MUST_CHECK sj_status sj_plan_ahead_start(const sj_planner_options *options,
                                            sj_plan_ahead **ahead);

/* sj_plan_ahead_is_of returns whether it plans the module at `path`; NULL is allowed. */
bool sj_plan_ahead_is_of(const sj_plan_ahead *ahead, const char *path);

/* sj_plan_ahead_path returns the path of the module; borrowed. */
const char *sj_plan_ahead_path(const sj_plan_ahead *ahead);

/* sj_plan_ahead_wait waits for the plan, at most `most_ms`; returns whether it is made, or has
 * failed. Blocking, any thread. */
bool sj_plan_ahead_wait(sj_plan_ahead *ahead, uint32_t most_ms);

/* sj_plan_ahead_free waits for the plan, unless it has not begun because two others are being made:
 * that one is given up. NULL is allowed. */
void sj_plan_ahead_free(sj_plan_ahead *ahead);

#endif
