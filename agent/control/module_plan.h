/* The plan of one module under a selection: by names, and by source files where those are asked. */
#ifndef SJ_AGENT_CONTROL_MODULE_PLAN_H
#define SJ_AGENT_CONTROL_MODULE_PLAN_H

#include "agent/control/rules.h"
#include "agent/control/selection.h"
#include "agent/planner/planner.h"

typedef struct sj_module_plan_options {
    const sj_selection *selection; /* borrowed */
    sj_rules *rules;               /* told which source files there are; borrowed; NULL: none */
    const char *cache_directory;   /* NULL: plans are not cached */
    const char *path;              /* of the module's file */
    bool is_main;                  /* the map file is about it */
    bool only_imports;             /* see planner.h */
} sj_module_plan_options;

/* sj_module_plan_make is sj_plan_make for a selection. Same errors; blocking. */
SJ_MUST_CHECK sj_status sj_module_plan_make(const sj_module_plan_options *options, sj_plan *plan,
                                            sj_error *error);

/* sj_module_plan_select is sj_plan_select for a selection; `wants_module` false: none of its
 * functions. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_module_plan_select(const sj_module_plan_options *options,
                                              bool wants_module, sj_plan *plan, bool *changed);

#endif
