/* Makes the plan of one module for a selection. The selection chooses functions by their names and,
 * optionally, by their source files. */
#ifndef SJ_AGENT_REGISTRY_MODULE_PLAN_H
#define SJ_AGENT_REGISTRY_MODULE_PLAN_H

#include "agent/planner/planner.h"
#include "agent/policy/function_place.h"
#include "agent/policy/selection.h"
#include "agent/registry/function_rules.h"

#include <sys/types.h>

/* Types of a module's functions, from debug data. */
typedef struct sj_found_types {
    struct {
        uint64_t offset;
        sj_typed_function *typed; /* owned; NULL: popped */
    } * items;
    size_t count;
    size_t capacity;
} sj_found_types;

/* Removes and returns the types of the function at `offset`; NULL: unknown. The caller owns the
 * result. */
sj_typed_function *sj_found_types_pop(sj_found_types *types, uint64_t offset);
void sj_found_types_deinit(sj_found_types *types);

typedef struct sj_module_plan_options {
    const sj_selection *selection; /* borrowed */
    sj_function_rules *rules;      /* receives the source files; borrowed; NULL: none */
    const char *cache_directory;   /* NULL: plans are not cached */
    const char *path;              /* path of the module's file */
    bool is_main;                  /* the map file describes this module */
    bool only_imports;             /* see planner.h */
    uint32_t threads;              /* see planner.h */
    /* receives the types of the functions that rules with types name, in the plan's order; NULL:
     * the caller needs no types */
    sj_found_types *types;
    pid_t pid; /* process whose libraries the module calls; 0: unknown */
} sj_module_plan_options;

/* Prepares the keys of the functions of the module that lies at `path`. The keys have the build-id
 * that the file has. */
void sj_module_keys_init(sj_function_keys *keys, const char *path);

/* Returns the key of function `index` of a plan; valid until the next call. */
const char *sj_module_key(sj_function_keys *keys, const sj_plan_header *plan, uint32_t index);

/* Makes the plan of a module, with the hooks that the selection wants. Returns the errors of
 * sj_plan_make. Blocking. */
SJ_MUST_CHECK sj_status sj_module_plan_make(const sj_module_plan_options *options, sj_plan *plan,
                                            sj_error *error);

/* Like sj_plan_select, for a selection. If `wants_module` is false, no function of the module is
 * wanted. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_module_plan_select(const sj_module_plan_options *options,
                                              bool wants_module, sj_plan *plan, bool *changed);

/* Reasons why a function needs another hook or plan than it has. */
typedef enum sj_renewal {
    SJ_RENEWAL_NONE = 0,
    SJ_RENEWAL_VALUES = 1, /* the function's plan now records more values */
    /* rules now name the function as a caller; agents get its address from a plan */
    SJ_RENEWAL_CALLER = 2
} sj_renewal;

/* Adds values and callers to a plan, for rules that were added after the plan was made. Skips
 * methods for which the plan does not say which argument is the receiver. Marks in `marks`
 * (sj_renewal) each function that records more now, or that a rule newly names as a caller, and
 * counts them. Blocks while it reads debug data if a rule newly asks for types. Returns SJ_ENOMEM
 * if out of memory. */
SJ_MUST_CHECK sj_status sj_module_plan_add_values(const sj_module_plan_options *options,
                                                  bool wants_module, sj_plan *plan, uint8_t *marks,
                                                  uint32_t *count);

#endif
