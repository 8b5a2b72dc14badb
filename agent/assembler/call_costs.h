/* What open calls of one execution stack have cost so far: CPU time at their entries, and that of
 * calls below them. One thread at a time. */
#ifndef SJ_AGENT_ASSEMBLER_CALL_COSTS_H
#define SJ_AGENT_ASSEMBLER_CALL_COSTS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SJ_COST_UNKNOWN UINT64_MAX

typedef struct sj_open_cost {
    uint64_t call_index;
    uint32_t function;
    uint32_t depth;
    uint64_t cpu_ns; /* the thread's at the entry */
    uint64_t below_ns;
    uint64_t bytes; /* that the thread had allocated; SJ_COST_UNKNOWN */
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
    uint64_t cpu_ns;
    uint64_t self_ns; /* without measured calls below */
    bool is_nested;   /* in a call of the same function */
    uint64_t bytes;   /* allocated; SJ_COST_UNKNOWN */
} sj_call_cost;

void sj_call_costs_deinit(sj_call_costs *costs);

/* sj_call_costs_allocated says what the thread has allocated so far, of the call that is entered or
 * left next. */
void sj_call_costs_allocated(sj_call_costs *costs, uint64_t bytes);

/* sj_call_costs_enter notes a call that was entered at a depth (from 1); calls at this depth or
 * below have ended, seen or not. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_costs_enter(sj_call_costs *costs, uint64_t call_index,
                                            uint32_t function, uint32_t depth, uint64_t cpu_ns);

/* sj_call_costs_leave ends a call; false: its entry was not measured. */
bool sj_call_costs_leave(sj_call_costs *costs, uint64_t call_index, uint64_t cpu_ns,
                         sj_call_cost *cost);

#endif
