/* Plans for the entries of an allocator and of what goes with it (agent/abi/zombies.h: heads). */
#ifndef SJ_AGENT_ZOMBIES_HEADS_H
#define SJ_AGENT_ZOMBIES_HEADS_H

#include "agent/abi/zombies.h"
#include "proto/base/error.h"

#include <stdbool.h>

/* A module to be planned. */
typedef struct sj_heads_module {
    const char *path;
    sj_heap_part part;
    bool is_c_library;
    bool is_program; /* the executable */
} sj_heads_module;

/* What was planned so far, as a region has it. */
typedef struct sj_heads_plans {
    uint32_t heads[SJ_HEADS];
    uint8_t parts[SJ_HEADS];
    uint8_t is_forwarding[SJ_HEADS];
    sj_heap_plan plans[SJ_HEAP_PARTS];
} sj_heads_plans;

/* sj_heads_plan plans one module for patching its entries only, writes the plans of both halves to
 * files whose names begin with `stem`, and adds it to `plans`, which is unchanged on failure, but
 * for files. `cache_directory` NULL: no cache. SJ_EUNSUPPORTED: an entry is missing or cannot be
 * patched, `error` says which; errors of sj_plan_make. Blocking: some 50 ms when not cached. */
SJ_MUST_CHECK sj_status sj_heads_plan(const sj_heads_module *module, const char *cache_directory,
                                      const char *stem, sj_heads_plans *plans, sj_error *error);

#endif
