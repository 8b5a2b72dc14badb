/* Plans the patches of the entries of an allocator and of related functions (sj_heap_entry in
 * agent/abi/zombies.h). */
#ifndef SJ_AGENT_ZOMBIES_HEAP_ENTRIES_H
#define SJ_AGENT_ZOMBIES_HEAP_ENTRIES_H

#include "agent/abi/zombies.h"
#include "proto/base/error.h"

#include <stdbool.h>

/* A module to plan. */
typedef struct sj_heap_entry_module {
    const char *path;
    sj_heap_part part;
    bool is_c_library;
    bool is_program; /* True for the executable. */
} sj_heap_entry_module;

/* The plans so far, in the format of a region. */
typedef struct sj_heap_entry_plans {
    uint32_t heap_entries[SJ_HEAP_ENTRIES];
    uint8_t parts[SJ_HEAP_ENTRIES];
    uint8_t is_forwarding[SJ_HEAP_ENTRIES];
    sj_heap_plan plans[SJ_HEAP_PARTS];
} sj_heap_entry_plans;

/* Plans patches of one module's entries only. Writes a plan for the allocating and one for the
 * freeing entries to files whose names begin with `stem`, and adds them to `*plans`. On failure
 * `*plans` is unchanged, but files may exist. `cache_directory` NULL: no cache. Returns
 * SJ_EUNSUPPORTED if an entry is missing or cannot be patched; `*error` names it. Also returns
 * errors of sj_plan_make. Blocking: some 50 ms if not cached. */
SJ_MUST_CHECK sj_status sj_heap_entry_plan(const sj_heap_entry_module *module,
                                           const char *cache_directory, const char *stem,
                                           sj_heap_entry_plans *plans, sj_error *error);

#endif
