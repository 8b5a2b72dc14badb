/* What each thread has allocated and freed since the counting began, as far as the entries of the
 * allocator count it (agent/inproc/zombies/counting.c). */
#ifndef SJ_AGENT_INPROC_RECORDER_MEMORY_H
#define SJ_AGENT_INPROC_RECORDER_MEMORY_H

#include "agent/inproc/recorder/recorder.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sj_memory_counters {
    uint64_t allocations;
    uint64_t allocated_bytes; /* usable ones, as malloc_usable_size says */
    uint64_t frees;
    uint64_t freed_bytes;
} sj_memory_counters;

/* Of the calling thread. */
extern __thread sj_memory_counters sj_recorder_memory
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Leads to 1 as long as the entries count; otherwise, and when NULL, nothing is recorded of what
 * calls allocate. */
extern _Atomic uint32_t *_Atomic sj_recorder_counts_memory __attribute__((visibility("hidden")));

/* sj_recorder_is_counting_memory returns whether the entries count at present. */
static inline bool sj_recorder_is_counting_memory(void)
{
    const _Atomic uint32_t *counts =
        atomic_load_explicit(&sj_recorder_counts_memory, memory_order_relaxed);
    return counts != NULL && atomic_load_explicit(counts, memory_order_relaxed) != 0;
}

/* sj_recorder_share_memory shows the recorder what the calling thread has counted, if it has a slot
 * of this process: a forked child has its parent's until it has taken leave of it. */
static inline void sj_recorder_share_memory(void)
{
    sj_thread_slot *slot = sj_recorder_self.slot;
    const sj_memory_counters *memory = &sj_recorder_memory;
    const _Atomic uint32_t *flag = sj_recorder_fork_flag;
    if (slot == NULL || flag == NULL || sj_recorder_self.is_forking != 0 ||
        atomic_load_explicit(flag, memory_order_relaxed) == 0) {
        return;
    }
    const uint64_t counted[SJ_SLOT_MEMORY] = {[SJ_SLOT_ALLOCATIONS] = memory->allocations,
                                              [SJ_SLOT_ALLOCATED_BYTES] = memory->allocated_bytes,
                                              [SJ_SLOT_FREES] = memory->frees,
                                              [SJ_SLOT_FREED_BYTES] = memory->freed_bytes};
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        atomic_store_explicit(&slot->memory[i], counted[i] + 1, memory_order_relaxed);
    }
}

#endif
