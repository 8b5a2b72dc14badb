/* Plans patches for the first instructions of an allocator's functions and of related functions
 * (sj_heap_entry in agent/abi/zombies.h). */
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

/* The plans of all modules so far, with the members of an sj_zombie_region. */
typedef struct sj_heap_entry_plans {
    uint32_t heap_entries[SJ_HEAP_ENTRIES];
    uint8_t parts[SJ_HEAP_ENTRIES];
    uint8_t is_forwarding[SJ_HEAP_ENTRIES];
    sj_heap_plan plans[SJ_HEAP_PARTS];
} sj_heap_entry_plans;

/* Plans patches for the entries of one module. Writes two plan files, for allocating and for
 * freeing entries, and adds them to `*plans`. Their names begin with `stem`. After an error,
 * `*plans` has not changed, but files may exist. `cache_directory` may be NULL.
 *
 * Returns SJ_EUNSUPPORTED if a needed entry is missing or cannot be patched; `*error` names it.
 * Also returns SJ_ENOMEM and errors of sj_plan_make. Blocks for about 50 ms if the plan is not
 * cached. */
SJ_MUST_CHECK sj_status sj_heap_entry_plan(const sj_heap_entry_module *module,
                                           const char *cache_directory, const char *stem,
                                           sj_heap_entry_plans *plans, sj_error *error);

#endif
