#include "agent/assembler/call_costs.h"

#include "proto/base/array.h"

#include <stdlib.h>

void sj_call_costs_deinit(sj_call_costs *costs)
{
    free(costs->open);
    *costs = (sj_call_costs){0};
}

void sj_call_costs_allocated(sj_call_costs *costs, uint64_t bytes)
{
    costs->bytes = bytes;
    costs->knows_bytes = true;
}

static uint64_t take_bytes(sj_call_costs *costs)
{
    const uint64_t bytes = costs->knows_bytes ? costs->bytes : SJ_COST_UNKNOWN;
    costs->knows_bytes = false;
    return bytes;
}

sj_status sj_call_costs_enter(sj_call_costs *costs, uint64_t call_index, uint32_t function,
                              uint32_t depth, uint64_t cpu_ns)
{
    while (costs->count != 0 && costs->open[costs->count - 1].depth >= depth) {
        costs->count--; /* ended by an exception or a jump */
    }
    SJ_TRY(sj_array_reserve(&costs->open, &costs->capacity, costs->count, 1, sizeof(*costs->open)));
    costs->open[costs->count++] = (sj_open_cost){.call_index = call_index,
                                                 .function = function,
                                                 .depth = depth,
                                                 .cpu_ns = cpu_ns,
                                                 .bytes = take_bytes(costs)};
    return SJ_OK;
}

static bool is_nested(const sj_call_costs *costs, uint32_t function)
{
    for (size_t i = 0; i < costs->count; i++) {
        if (costs->open[i].function == function) {
            return true;
        }
    }
    return false;
}

bool sj_call_costs_leave(sj_call_costs *costs, uint64_t call_index, uint64_t cpu_ns,
                         sj_call_cost *cost)
{
    size_t place = costs->count;
    const uint64_t bytes = take_bytes(costs);
    while (place > 0 && costs->open[place - 1].call_index != call_index) {
        place--;
    }
    if (place == 0) {
        return false;
    }
    const sj_open_cost ended = costs->open[place - 1];
    costs->count = place - 1;
    cost->cpu_ns = cpu_ns > ended.cpu_ns ? cpu_ns - ended.cpu_ns : 0;
    cost->self_ns = cost->cpu_ns > ended.below_ns ? cost->cpu_ns - ended.below_ns : 0;
    cost->is_nested = is_nested(costs, ended.function);
    cost->bytes =
        bytes != SJ_COST_UNKNOWN && bytes >= ended.bytes ? bytes - ended.bytes : SJ_COST_UNKNOWN;
    if (costs->count != 0) {
        costs->open[costs->count - 1].below_ns += cost->cpu_ns;
    }
    return true;
}
