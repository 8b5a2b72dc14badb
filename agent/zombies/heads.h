/* The plan for the entries of the C library's allocator (agent/abi/zombies.h: heads). */
#ifndef SJ_AGENT_ZOMBIES_HEADS_H
#define SJ_AGENT_ZOMBIES_HEADS_H

#include "agent/abi/zombies.h"
#include "proto/base/error.h"

/* sj_heads_plan plans the C library at `library` for patching the entries only and writes the plans
 * of both halves to `plan_paths`; `cache_directory` NULL: no cache. Fills in `heads` and
 * `*malloc_offset`. SJ_EUNSUPPORTED: an entry is missing or cannot be patched, `error` says which;
 * errors of sj_plan_make. Blocking: some 50 ms when not cached. */
SJ_MUST_CHECK sj_status sj_heads_plan(const char *library, const char *cache_directory,
                                      const char *const plan_paths[SJ_HEAP_HALVES],
                                      uint32_t heads[SJ_HEADS], uint64_t *malloc_offset,
                                      sj_error *error);

#endif
