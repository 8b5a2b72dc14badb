/* Planner: finds the functions of a module, and decides how to hook each one. It runs outside the
 * traced program. Every parser checks its bounds. A damaged file gives SJ_ECORRUPT or excluded
 * functions, never a wrong patch. Thread-safe: no global state. */
#ifndef SJ_AGENT_PLANNER_PLANNER_H
#define SJ_AGENT_PLANNER_PLANNER_H

#include "agent/abi/plan.h"
#include "agent/abi/plan_check.h"
#include "proto/base/error.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Decides whether a function must be hooked. `name` is the symbol, or "". Called once per function,
 * in the plan's order, possibly for many thousand functions. */
typedef bool (*sj_function_wanted)(void *context, const char *name, uint64_t offset,
                                   uint32_t size_bytes);

/* Lists the places of the values to record of a function. Any status except SJ_OK ends the
 * planning. */
typedef sj_status (*sj_function_values)(void *context, const char *name, uint64_t offset,
                                        uint8_t places[SJ_PLACES_PER_FUNCTION]);

typedef struct sj_planner_options {
    const char *module_path;     /* the file to plan */
    const char *map_file;        /* linker map, or output of `nm -S`; NULL: none */
    const char *debug_root;      /* NULL: /usr/lib/debug */
    const char *cache_directory; /* NULL: no cache */
    sj_function_wanted wanted;   /* NULL: all */
    sj_function_values values;   /* NULL: none */
    void *context;               /* passed to both functions */
    bool with_receivers;         /* methods record the class of their receiver */
    /* also plans calls of other modules' functions: adds the imports after the functions */
    bool library_calls;
    bool only_imports; /* plans only the imports */
    uint32_t threads;  /* number of threads to use, including the caller; 0: only the caller */
} sj_planner_options;

typedef struct sj_plan {
    const sj_plan_header *header; /* the mapped or allocated file */
    size_t size_bytes;
    bool mapped;
    bool from_cache;
} sj_plan;

/* Plans all functions of one module, or maps the cached plan of the same build-id and planner
 * version. Then selects the wanted functions. Blocks for about 30 ms of CPU time per MB of text if
 * the plan is not cached. The plan does not depend on the number of threads. The caller owns
 * `*plan`. Returns SJ_ENOTFOUND if the file does not exist, and SJ_EUNSUPPORTED if it is not an ELF
 * file of a supported machine. Returns SJ_EINVAL if the map file is of another build. Also returns
 * SJ_ECORRUPT, SJ_ELIMIT, SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_plan_make(const sj_planner_options *options, sj_plan *plan,
                                     sj_error *error);

/* True if the cache has a plan of the module. sj_plan_make uses that plan if it passes the
 * check. */
bool sj_plan_is_cached(const sj_planner_options *options);

/* Returns the number of threads that can plan at once: the processors that this process may use, up
 * to a limit. */
uint32_t sj_plan_threads(void);

/* Marks the functions that `wanted` refuses as SJ_SKIP_FILTERED, and restores the others, whatever
 * was selected before. Sets `*changed` to true if any mark changed, else to false; `changed` may be
 * NULL. On SJ_ENOMEM the plan is unchanged. */
SJ_MUST_CHECK sj_status sj_plan_select(sj_plan *plan, sj_function_wanted wanted, void *context,
                                       bool *changed);

/* Calls `add` with the places of each function, so that it can add more places. Skips methods whose
 * receivers the plan does not know. Sets the lowest bit in `marks` of each function that has more
 * places now, and counts these functions. Returns SJ_ENOMEM or an error of `add`. */
SJ_MUST_CHECK sj_status sj_plan_add_values(sj_plan *plan, sj_function_values add, void *context,
                                           uint8_t *marks, uint32_t *count);

/* Writes a plan to `path` (mode 0600, renamed into place). */
SJ_MUST_CHECK sj_status sj_plan_write(const sj_plan *plan, const char *path, sj_error *error);

/* Frees a plan; safe on a zeroed one. */
void sj_plan_free(sj_plan *plan);

/* Returns a short English phrase in static storage. */
const char *sj_technique_text(sj_technique technique);

#endif
