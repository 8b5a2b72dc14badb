/* The planner: finds the functions of a module and decides how each can be hooked.
 * Runs outside the traced app. Every parser in it is bounds-checked; damaged files give SJ_ECORRUPT
 * or functions excluded, never a wrong patch. Thread-safe: no global state. */
#ifndef SJ_AGENT_PLANNER_PLANNER_H
#define SJ_AGENT_PLANNER_PLANNER_H

#include "agent/abi/plan.h"
#include "agent/abi/plan_check.h"
#include "proto/base/error.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* sj_function_wanted decides whether a function is to be hooked. `name` is the symbol or "".
 * Called once per function, in the plan's order, possibly for many thousand functions. */
typedef bool (*sj_function_wanted)(void *context, const char *name, uint64_t offset,
                                   uint32_t size_bytes);

/* sj_function_values lists where what is to be recorded of a function's values is. Anything but
 * SJ_OK ends the planning. */
typedef sj_status (*sj_function_values)(void *context, const char *name, uint64_t offset,
                                        uint8_t places[SJ_PLACES_PER_FUNCTION]);

typedef struct sj_planner_options {
    const char *module_path;     /* file to plan */
    const char *map_file;        /* linker map or `nm -S` listing; NULL: none */
    const char *debug_root;      /* NULL: /usr/lib/debug */
    const char *cache_directory; /* NULL: no cache */
    sj_function_wanted wanted;   /* NULL: all */
    sj_function_values values;   /* NULL: none */
    void *context;               /* of the two */
    bool with_receivers;         /* methods record the class of their receiver */
    bool library_calls; /* calls of other modules' functions, too: imports behind the functions */
    bool only_imports;  /* nothing but them */
    uint32_t threads;   /* to plan with, the caller's among them; 0: that one */
} sj_planner_options;

typedef struct sj_plan {
    const sj_plan_header *header; /* the mapped or allocated file */
    size_t size_bytes;
    bool mapped;
    bool from_cache;
} sj_plan;

/* sj_plan_make plans all functions of one module (or maps the cached plan of the same build-id and
 * planner version) and selects those that are wanted. Blocking: about 30 ms of CPU per MB of text
 * when not cached; the plan does not depend on the number of threads. `*plan` is owned by the
 * caller. SJ_ENOTFOUND no such file, SJ_EUNSUPPORTED not an ELF of a supported machine,
 * SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_plan_make(const sj_planner_options *options, sj_plan *plan,
                                     sj_error *error);

/* sj_plan_is_cached returns whether the cache has a plan of the module, which sj_plan_make would
 * take if it turns out to be sound. */
bool sj_plan_is_cached(const sj_planner_options *options);

/* sj_plan_threads is how many threads can plan at once here: the processors that this process may
 * use, bounded. */
uint32_t sj_plan_threads(void);

/* sj_plan_select marks the functions that `wanted` does not name as SJ_SKIP_FILTERED, and the
 * others as what they are, whatever was selected before. `*changed` is set when any was marked
 * anew; NULL is allowed. SJ_ENOMEM: the plan stays as it was. */
SJ_MUST_CHECK sj_status sj_plan_select(sj_plan *plan, sj_function_wanted wanted, void *context,
                                       bool *changed);

/* sj_plan_add_values lets `add`, which is given the places that a function has, add others; of
 * methods whose receivers the plan does not know, none. Sets the lowest bit of each function in
 * `marks` that has more now, and counts them. SJ_ENOMEM, errors of `add`. */
SJ_MUST_CHECK sj_status sj_plan_add_values(sj_plan *plan, sj_function_values add, void *context,
                                           uint8_t *marks, uint32_t *count);

/* sj_plan_write stores a plan at `path` (created, mode 0600, renamed into place). */
SJ_MUST_CHECK sj_status sj_plan_write(const sj_plan *plan, const char *path, sj_error *error);

/* sj_plan_free releases a plan; safe on a zeroed one. */
void sj_plan_free(sj_plan *plan);

/* sj_technique_text and sj_skip_text return short English phrases. Static storage. */
const char *sj_technique_text(sj_technique technique);
const char *sj_skip_text(sj_skip skip);

#endif
