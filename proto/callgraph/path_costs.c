#include "proto/callgraph/path_costs.h"

#include "proto/base/array.h"

#include <stdlib.h>

void sj_block_costs_deinit(sj_block_costs *costs)
{
    free(costs->places);
    *costs = (sj_block_costs){0};
}

static bool is_cost(const sj_block_value *value)
{
    return sj_value_kind_of(value->descriptor) == SJ_VALUE_COST;
}

static int compare_places(const void *left, const void *right)
{
    const uint64_t a = ((const sj_call_costs_place *)left)->call_index;
    const uint64_t b = ((const sj_call_costs_place *)right)->call_index;
    return a < b ? -1 : a > b;
}

sj_status sj_block_costs_list(sj_block_costs *costs, const sj_block *block)
{
    costs->count = 0;
    for (size_t i = 0; i < block->value_count; i++) {
        const sj_block_value *value = &block->values[i];
        const bool continues =
            i != 0 && is_cost(value - 1) && value[-1].call_index == value->call_index;
        if (!is_cost(value) || continues) {
            continue;
        }
        SJ_TRY(sj_array_reserve(&costs->places, &costs->capacity, costs->count, 1,
                                sizeof(*costs->places)));
        costs->places[costs->count++] =
            (sj_call_costs_place){.call_index = value->call_index, .value = i};
    }
    if (costs->count != 0) {
        qsort(costs->places, costs->count, sizeof(*costs->places), compare_places);
    }
    return SJ_OK;
}

/* Returns the costs of the call whose values begin at `first`, as sums over one call. */
static sj_path_cost read_call(const sj_block *block, size_t first)
{
    sj_path_cost call = {.calls = 1};
    for (size_t i = first; i < block->value_count && is_cost(&block->values[i]) &&
                           block->values[i].call_index == block->values[first].call_index;
         i++) {
        const uint32_t position = sj_value_position(block->values[i].descriptor);
        if (position < SJ_COSTS && position != SJ_COST_FUNCTION) {
            call.all[position] = block->values[i].bits;
            call.known |= UINT32_C(1) << position;
        }
    }
    for (size_t i = 0; i < SJ_COSTS && call.all[SJ_COST_NESTED] == 0; i++) {
        call.outermost[i] = call.all[i];
    }
    return call;
}

const sj_path_cost *sj_path_costs_of(const sj_path_nodes *paths, uint32_t node)
{
    const uint32_t extra = paths->rests[node].extra;
    const uint32_t cost = extra != 0 ? paths->extras[extra - 1].cost : 0;
    return cost != 0 ? &paths->costs[cost - 1] : NULL;
}

sj_status sj_path_costs_add(sj_path_nodes *paths, uint32_t node, const sj_path_cost *cost)
{
    sj_path_extra *extra;
    SJ_TRY(sj_path_nodes_extra(paths, node, &extra));
    if (extra->cost == 0) {
        SJ_TRY(sj_array_reserve(&paths->costs, &paths->cost_capacity, paths->cost_count, 1,
                                sizeof(*paths->costs)));
        paths->costs[paths->cost_count++] = (sj_path_cost){.function = paths->nodes[node].function};
        extra->cost = (uint32_t)paths->cost_count;
    }
    sj_path_cost *sums = &paths->costs[extra->cost - 1];
    sums->calls += cost->calls;
    sums->known |= cost->known;
    for (size_t i = 0; i < SJ_COSTS; i++) {
        sums->all[i] += cost->all[i];
        sums->outermost[i] += cost->outermost[i];
    }
    return SJ_OK;
}

sj_status sj_block_costs_count(const sj_block_costs *costs, const sj_block *block,
                               uint64_t call_index, sj_path_nodes *paths, uint32_t node)
{
    const sj_call_costs_place key = {.call_index = call_index};
    const sj_call_costs_place *place =
        costs->count != 0 ? bsearch(&key, costs->places, costs->count, sizeof(key), compare_places)
                          : NULL;
    if (place == NULL || node == 0) {
        return SJ_OK;
    }
    const sj_path_cost call = read_call(block, place->value);
    sj_path_nodes_touch(paths, node);
    return sj_path_costs_add(paths, node, &call);
}
