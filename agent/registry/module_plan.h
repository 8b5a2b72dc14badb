/* The plan of one module under a selection: by names, and by source files where those are asked. */
#ifndef SJ_AGENT_REGISTRY_MODULE_PLAN_H
#define SJ_AGENT_REGISTRY_MODULE_PLAN_H

#include "agent/planner/planner.h"
#include "agent/policy/selection.h"
#include "agent/registry/function_rules.h"

#include <sys/types.h>

/* What debug data say of functions of a module. */
typedef struct sj_found_types {
    struct {
        uint64_t offset;
        sj_typed_function *typed; /* owned; NULL: taken */
    } * items;
    size_t count;
    size_t capacity;
} sj_found_types;

/* sj_found_types_take gives away what is known of the function at `offset`; NULL: nothing. */
sj_typed_function *sj_found_types_take(sj_found_types *types, uint64_t offset);
void sj_found_types_deinit(sj_found_types *types);

typedef struct sj_module_plan_options {
    const sj_selection *selection; /* borrowed */
    sj_function_rules *rules;      /* gets the source files; borrowed; NULL: none */
    const char *cache_directory;   /* NULL: plans are not cached */
    const char *path;              /* of the module's file */
    bool is_main;                  /* the map file is about it */
    bool only_imports;             /* see planner.h */
    uint32_t threads;              /* see planner.h */
    sj_found_types *types;         /* gets the types of functions that typed rules are about, in
                                      the plan's order; NULL: they are not asked for */
    pid_t pid;                     /* whose libraries the module calls; 0: they are not known */
} sj_module_plan_options;

/* sj_module_plan_make is sj_plan_make for a selection. Same errors; blocking. */
SJ_MUST_CHECK sj_status sj_module_plan_make(const sj_module_plan_options *options, sj_plan *plan,
                                            sj_error *error);

/* sj_module_plan_select is sj_plan_select for a selection; `wants_module` false: none of its
 * functions. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_module_plan_select(const sj_module_plan_options *options,
                                              bool wants_module, sj_plan *plan, bool *changed);

/* Why hooks of a function that were made before are not those that are wanted now. */
typedef enum sj_renewal {
    SJ_RENEWAL_NONE = 0,
    SJ_RENEWAL_VALUES = 1, /* its plan records more of it */
    SJ_RENEWAL_CALLER = 2  /* rules name it as a caller; agents learn where from a plan */
} sj_renewal;

/* sj_module_plan_add_values adds to a plan what rules ask for that came after it was made: never of
 * methods whose receivers are not known in it. Marks (sj_renewal) each function in `marks` that has
 * more now or is a caller that a rule newly asks about, and counts them.
 * Blocking: reads debug data where a rule newly asks for types. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_module_plan_add_values(const sj_module_plan_options *options,
                                                  sj_plan *plan, uint8_t *marks, uint32_t *count);

#endif
