/* Counts what each thread has allocated and freed since counting began, as far as the allocator's
 * entries count it (agent/inproc/heap_guard/counting.c). */
#ifndef SJ_AGENT_INPROC_RECORDER_MEMORY_H
#define SJ_AGENT_INPROC_RECORDER_MEMORY_H

#include "agent/inproc/recorder/recorder.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The calling thread's counters, indexed by sj_slot_memory; each holds the count plus 1. They lie
 * in the thread's slot. Without a slot, and during a fork, they lie in the thread's own memory.
 * NULL: not yet found. */
extern __thread _Atomic uint64_t *sj_recorder_memory_place
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A copy of a thread's counters. */
typedef struct sj_memory_counters {
    uint64_t counters[SJ_SLOT_MEMORY];
} sj_memory_counters;

/* Points to 1 while the allocator's entries count. If it points to 0 or is NULL, the recorder
 * records nothing of what calls allocate. */
extern _Atomic uint32_t *_Atomic sj_recorder_counts_memory __attribute__((visibility("hidden")));

/* True if the allocator's entries count at present. */
static inline bool sj_recorder_is_counting_memory(void)
{
    const _Atomic uint32_t *counts =
        atomic_load_explicit(&sj_recorder_counts_memory, memory_order_relaxed);
    return counts != NULL && atomic_load_explicit(counts, memory_order_relaxed) != 0;
}

/* Points to 0 if nothing is recorded, or if the slots belong to another process. The latter is so
 * in a child that was forked without the agent's fork handlers. */
extern const _Atomic uint32_t *sj_recorder_owns_slots __attribute__((visibility("hidden")));

/* Returns the counters that the calling thread writes. */
_Atomic uint64_t *sj_recorder_find_memory(void) __attribute__((visibility("hidden")));

static inline _Atomic uint64_t *sj_recorder_memory(void)
{
    _Atomic uint64_t *place = sj_recorder_memory_place;
    const bool is_found =
        place != NULL && atomic_load_explicit(sj_recorder_owns_slots, memory_order_relaxed) != 0;
    return __builtin_expect(is_found, 1) ? place : sj_recorder_find_memory();
}

/* Counts one operation on `bytes` bytes. `first` is the operation's counter; the counter of its
 * bytes follows. Only the counters' own thread may call it. */
static inline void sj_recorder_count_memory(_Atomic uint64_t *memory, sj_slot_memory first,
                                            uint64_t bytes)
{
    _Atomic uint64_t *counter = &memory[first];
    atomic_store_explicit(&counter[0], atomic_load_explicit(&counter[0], memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&counter[1],
                          atomic_load_explicit(&counter[1], memory_order_relaxed) + bytes,
                          memory_order_relaxed);
}

static inline sj_memory_counters sj_recorder_copy_memory(void)
{
    const _Atomic uint64_t *memory = sj_recorder_memory();
    sj_memory_counters copy;
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        copy.counters[i] = atomic_load_explicit(&memory[i], memory_order_relaxed);
    }
    return copy;
}

static inline void sj_recorder_restore_memory(const sj_memory_counters *copy)
{
    _Atomic uint64_t *memory = sj_recorder_memory();
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        atomic_store_explicit(&memory[i], copy->counters[i], memory_order_relaxed);
    }
}

/* sj_recorder_begin_showing_memory makes the calling thread count in its slot.
 * sj_recorder_end_showing_memory moves the counters back into the thread's own memory. */
void sj_recorder_begin_showing_memory(void) __attribute__((visibility("hidden")));
void sj_recorder_end_showing_memory(void) __attribute__((visibility("hidden")));

#endif
