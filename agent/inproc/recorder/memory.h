/* What each thread has allocated and freed since the counting began, as far as the entries of the
 * allocator count it (agent/inproc/zombies/counting.c). */
#ifndef SJ_AGENT_INPROC_RECORDER_MEMORY_H
#define SJ_AGENT_INPROC_RECORDER_MEMORY_H

#include <stdatomic.h>
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

#endif
