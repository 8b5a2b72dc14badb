/* What open calls of one execution stack have cost so far: readings of the thread's counters
 * (sj_cost_counter) at their entries, and what calls below them took. One thread at a time. */
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
    uint32_t depth; /* from 1 */
} sj_costly_call;

typedef struct sj_open_cost {
    sj_costly_call call;
    uint32_t measured;  /* bits of sj_cost_counter */
    bool is_ended;      /* its last readings come one after the other */
    bool is_distrusted; /* something else ran meanwhile on its thread */
    uint64_t at_entry[SJ_COUNTERS];
    uint64_t below[SJ_COUNTERS];
} sj_open_cost;

/* Zeroed is empty. */
typedef struct sj_call_costs {
    sj_open_cost *open; /* measured calls, outermost first */
    size_t count;
    size_t capacity;
    uint64_t bytes; /* that the thread has allocated, as the next call begins or ends; likewise */
    bool knows_bytes;
} sj_call_costs;

typedef struct sj_call_cost {
    uint64_t all;
    uint64_t self;  /* without measured calls below */
    bool is_nested; /* in a measured call of the same function */
    bool is_first;  /* of the call's costs */
} sj_call_cost;

void sj_call_costs_deinit(sj_call_costs *costs);

/* sj_call_costs_enter notes a counter's reading at a call's entry; other calls at its depth or
 * below have ended, seen or not. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_costs_enter(sj_call_costs *costs, const sj_costly_call *call,
                                            sj_cost_counter counter, uint64_t reading);

/* sj_call_costs_leave takes a counter's reading at a call's exit; false: what the call has cost is
 * not known. */
bool sj_call_costs_leave(sj_call_costs *costs, uint64_t call_index, sj_cost_counter counter,
                         uint64_t reading, sj_call_cost *cost);

/* sj_call_costs_distrust: the thread has run something else in the middle of all open calls. */
void sj_call_costs_distrust(sj_call_costs *costs);

#endif
