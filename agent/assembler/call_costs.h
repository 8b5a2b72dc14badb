/* Costs of the open calls of one execution stack: the thread's counters (sj_cost_counter) read at
 * each entry, and the part that measured callees used. Not thread-safe. */
#ifndef SJ_AGENT_ASSEMBLER_CALL_COSTS_H
#define SJ_AGENT_ASSEMBLER_CALL_COSTS_H

#include "proto/base/status.h"
#include "proto/block/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call whose costs are measured. */
typedef struct sj_costly_call {
    uint64_t call_index;
    uint32_t function;
    uint32_t depth; /* 1: the outermost call */
} sj_costly_call;

typedef struct sj_open_cost {
    sj_costly_call call;
    /* bit set of the counters (sj_cost_counter) that were read at the entry and not yet at the exit
     */
    uint32_t measured;
    bool is_ended; /* the exit was seen; some counter readings of the exit may still arrive */
    /* other code ran on the thread during the call, so its costs are not known */
    bool is_distrusted;
    uint64_t at_entry[SJ_COUNTERS];
    uint64_t below[SJ_COUNTERS]; /* costs of the measured callees that have ended */
} sj_open_cost;

/* All zero: empty. */
typedef struct sj_call_costs {
    sj_open_cost *open; /* measured calls, outermost first */
    size_t count;
    size_t capacity;
    uint64_t bytes; /* bytes the thread has allocated so far, sampled at the latest entry or exit */
    bool knows_bytes;
} sj_call_costs;

typedef struct sj_call_cost {
    uint64_t all;
    uint64_t self;  /* without measured callees */
    bool is_nested; /* a measured call of the same function contains this one */
    bool is_first;  /* true for the first counter of the call that is read at its exit */
} sj_call_cost;

void sj_call_costs_deinit(sj_call_costs *costs);

/* Stores a counter's reading at the entry of a call. Open calls at the same depth or deeper have
 * ended and are removed. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_call_costs_enter(sj_call_costs *costs, const sj_costly_call *call,
                                            sj_cost_counter counter, uint64_t reading);

/* Computes the cost of a call from a counter's reading at its exit. Returns false if the cost is
 * not known. */
bool sj_call_costs_leave(sj_call_costs *costs, uint64_t call_index, sj_cost_counter counter,
                         uint64_t reading, sj_call_cost *cost);

/* Marks the costs of all open calls as unknown, because the thread ran other code meanwhile. */
void sj_call_costs_distrust(sj_call_costs *costs);

#endif
