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

/* Where the calling thread shows the recorder what it has counted: in its slot; NULL: it has none,
 * or is forking. */
extern __thread _Atomic uint64_t *sj_recorder_memory_shown
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Leads to 0 where slots are not this process's: in a child that was forked without our handlers,
 * and when nothing is recorded. */
extern const _Atomic uint32_t *sj_recorder_owns_slots __attribute__((visibility("hidden")));

static inline void sj_recorder_show_pair(_Atomic uint64_t shown[2], uint64_t count, uint64_t bytes)
{
    atomic_store_explicit(&shown[0], count + 1, memory_order_relaxed);
    atomic_store_explicit(&shown[1], bytes + 1, memory_order_relaxed);
}

/* sj_recorder_show_allocated shows what the calling thread has allocated so far,
 * sj_recorder_show_freed what it has given back; whichever is first shows both. */
static inline void sj_recorder_show_memory(sj_slot_memory first)
{
    const sj_memory_counters *memory = &sj_recorder_memory;
    _Atomic uint64_t *shown = sj_recorder_memory_shown;
    if (shown == NULL || atomic_load_explicit(sj_recorder_owns_slots, memory_order_relaxed) == 0) {
        return;
    }
    const sj_slot_memory other = first == SJ_SLOT_FREES ? SJ_SLOT_ALLOCATIONS : SJ_SLOT_FREES;
    const bool is_first = atomic_load_explicit(&shown[other], memory_order_relaxed) == 0;
    if (first == SJ_SLOT_ALLOCATIONS || is_first) {
        sj_recorder_show_pair(&shown[SJ_SLOT_ALLOCATIONS], memory->allocations,
                              memory->allocated_bytes);
    }
    if (first == SJ_SLOT_FREES || is_first) {
        sj_recorder_show_pair(&shown[SJ_SLOT_FREES], memory->frees, memory->freed_bytes);
    }
}

static inline void sj_recorder_show_allocated(void)
{
    sj_recorder_show_memory(SJ_SLOT_ALLOCATIONS);
}

static inline void sj_recorder_show_freed(void)
{
    sj_recorder_show_memory(SJ_SLOT_FREES);
}

/* sj_recorder_begin_showing_memory lets the calling thread show what it counts in its slot;
 * sj_recorder_end_showing_memory ends that. */
static inline void sj_recorder_begin_showing_memory(void)
{
    sj_thread_slot *slot = sj_recorder_self.slot;
    sj_recorder_memory_shown = slot != NULL ? slot->memory : NULL;
    if (sj_recorder_is_counting_memory()) {
        sj_recorder_show_allocated();
        sj_recorder_show_freed();
    }
}

static inline void sj_recorder_end_showing_memory(void)
{
    sj_recorder_memory_shown = NULL;
}

#endif
