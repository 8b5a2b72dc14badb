#include "collector-server/store/cost_sums.h"

#include <stdlib.h>

/* The costs, in the order of the columns. */
static const struct {
    sj_value_cost cost;
    bool is_self; /* a self cost: nested calls of the function add to it */
} columns_of[SJ_COST_COLUMNS] = {
    {SJ_COST_CPU_NS, false},
    {SJ_COST_SELF_NS, true},
    {SJ_COST_ALLOCATIONS, false},
    {SJ_COST_ALLOCATED_BYTES, false},
    {SJ_COST_FREES, false},
    {SJ_COST_FREED_BYTES, false},
    {SJ_COST_SELF_ALLOCATED_BYTES, true},
};

static void fill(const sj_path_cost *sums, bool once, sj_cost_columns *columns)
{
    *columns = (sj_cost_columns){0};
    for (size_t i = 0; sums != NULL && i < SJ_COST_COLUMNS; i++) {
        const sj_value_cost cost = columns_of[i].cost;
        const uint64_t sum =
            once && !columns_of[i].is_self ? sums->outermost[cost] : sums->all[cost];
        columns->values[i] = sum < INT64_MAX ? (int64_t)sum : INT64_MAX;
        columns->known[i] = (sums->known >> cost & 1) != 0 ? &columns->values[i] : NULL;
    }
}

void sj_cost_columns_of_path(const sj_path_cost *sums, sj_cost_columns *columns)
{
    fill(sums, false, columns);
}

void sj_cost_columns_of_function(const sj_path_cost *sums, sj_cost_columns *columns)
{
    fill(sums, true, columns);
}

void sj_cost_state_write(sj_writer *writer, const sj_path_cost *sums)
{
    sj_write_varint(writer, sums->calls);
    sj_write_varint(writer, sums->known);
    for (size_t i = 0; i < SJ_COSTS; i++) {
        sj_write_varint(writer, sums->all[i]);
        sj_write_varint(writer, sums->outermost[i]);
    }
}

bool sj_cost_state_read(sj_reader *reader, sj_path_cost *sums)
{
    *sums = (sj_path_cost){0};
    if (sj_reader_left(reader) == 0) {
        return false;
    }
    sums->calls = sj_read_varint(reader);
    sums->known = (uint32_t)sj_read_varint(reader);
    for (size_t i = 0; i < SJ_COSTS; i++) {
        sums->all[i] = sj_read_varint(reader);
        sums->outermost[i] = sj_read_varint(reader);
    }
    return true;
}

static int compare_functions(const void *left, const void *right)
{
    const uint32_t a = ((const struct sj_function_cost *)left)->function;
    const uint32_t b = ((const struct sj_function_cost *)right)->function;
    return a < b ? -1 : a > b;
}

static void add(sj_path_cost *to, const sj_path_cost *from)
{
    to->calls += from->calls;
    to->known |= from->known;
    for (size_t i = 0; i < SJ_COSTS; i++) {
        to->all[i] += from->all[i];
        to->outermost[i] += from->outermost[i];
    }
}

sj_status sj_function_costs_sum(const sj_callgraph *graph, sj_function_costs *costs)
{
    const size_t paths = sj_callgraph_cost_count(graph);
    *costs = (sj_function_costs){0};
    if (paths == 0) {
        return SJ_OK;
    }
    costs->items = malloc(paths * sizeof(*costs->items));
    if (costs->items == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < paths; i++) {
        const sj_path_cost *sums = sj_callgraph_cost_at(graph, i);
        costs->items[i] = (struct sj_function_cost){.function = sums->function, .sums = *sums};
    }
    qsort(costs->items, paths, sizeof(*costs->items), compare_functions);
    costs->count = 1;
    for (size_t i = 1; i < paths; i++) {
        struct sj_function_cost *last = &costs->items[costs->count - 1];
        if (last->function == costs->items[i].function) {
            add(&last->sums, &costs->items[i].sums);
        } else {
            costs->items[costs->count++] = costs->items[i];
        }
    }
    return SJ_OK;
}

void sj_function_costs_deinit(sj_function_costs *costs)
{
    free(costs->items);
    *costs = (sj_function_costs){0};
}

const sj_path_cost *sj_function_costs_find(const sj_function_costs *costs, uint32_t function)
{
    const struct sj_function_cost key = {.function = function};
    const struct sj_function_cost *found =
        costs->count != 0
            ? bsearch(&key, costs->items, costs->count, sizeof(key), compare_functions)
            : NULL;
    return found != NULL ? &found->sums : NULL;
}
