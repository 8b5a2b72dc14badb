#include "collector-server/query/tree_rows.h"

#include "proto/base/array.h"
#include "proto/base/bisect.h"
#include "proto/callgraph/callgraph.h"

#include <stdlib.h>

void sj_tree_rows_deinit(sj_tree_rows *tree)
{
    free(tree->rows);
    free(tree->costs);
    sj_hash_map_deinit(&tree->places);
    *tree = (sj_tree_rows){0};
}

bool sj_tree_rows_add(sj_tree_rows *tree, const sj_tree_row *row)
{
    if (sj_array_reserve(&tree->rows, &tree->capacity, tree->count, 1, sizeof(*tree->rows)) !=
        SJ_OK) {
        return false;
    }
    tree->rows[tree->count++] = *row;
    return true;
}

bool sj_tree_rows_begin(sj_tree_rows *tree)
{
    const sj_tree_row root = {0};
    tree->count = 0;
    tree->cost_count = 0;
    sj_hash_map_deinit(&tree->places);
    tree->places = (sj_hash_map){0};
    return sj_tree_rows_add(tree, &root);
}

const sj_tree_cost *sj_tree_rows_cost(const sj_tree_rows *tree, uint32_t row)
{
    const uint32_t cost = tree->rows[row].cost;
    return cost != 0 ? &tree->costs[cost - 1] : NULL;
}

bool sj_tree_rows_add_cost(sj_tree_rows *tree, uint32_t row, const sj_tree_cost *cost)
{
    if (tree->rows[row].cost == 0) {
        if (sj_array_reserve(&tree->costs, &tree->cost_capacity, tree->cost_count, 1,
                             sizeof(*tree->costs)) != SJ_OK) {
            return false;
        }
        tree->costs[tree->cost_count++] = (sj_tree_cost){0};
        tree->rows[row].cost = (uint32_t)tree->cost_count;
    }
    sj_tree_cost *sums = &tree->costs[tree->rows[row].cost - 1];
    for (size_t i = 0; i < SJ_TREE_COSTS; i++) {
        sums->sums[i] += cost->sums[i];
    }
    sums->known |= cost->known;
    return true;
}

uint32_t sj_tree_rows_find(const sj_tree_rows *tree, int64_t path_id)
{
    const size_t low = SJ_BISECT(1, tree->count, i, tree->rows[i].path_id < path_id);
    return low < tree->count && tree->rows[low].path_id == path_id ? (uint32_t)low : 0;
}

uint32_t sj_tree_rows_find_or_add(sj_tree_rows *tree, int64_t session_id, uint32_t parent,
                                  int64_t function_id)
{
    const sj_hash_entry *known = sj_hash_map_find(&tree->places, (uint64_t)function_id, parent + 1);
    const uint32_t number = (uint32_t)tree->count;
    if (known != NULL || number >= SJ_MOST_PATHS) {
        return known != NULL ? known->first : 0;
    }
    const sj_hash_entry place = {.key = (uint64_t)function_id, .sub = parent + 1, .first = number};
    const sj_tree_row row = {.path_id = session_id << 32 | number,
                             .parent_id = parent != 0 ? tree->rows[parent].path_id : 0,
                             .function_id = function_id,
                             .depth = parent != 0 ? tree->rows[parent].depth + 1 : 0};
    return sj_tree_rows_add(tree, &row) && sj_hash_map_put(&tree->places, &place) == SJ_OK ? number
                                                                                           : 0;
}

/* Adds costs to a row of a derived tree. Adds only the self costs unless `is_outermost`; see
 * add_sums. */
static bool add_costs(sj_tree_rows *derived, uint32_t row, const sj_tree_cost *from,
                      bool is_outermost)
{
    sj_tree_cost cost = *from;
    for (size_t i = 0; i < SJ_TREE_COSTS && !is_outermost; i++) {
        const bool is_self = i == SJ_TREE_CPU_SELF_NS || i == SJ_TREE_ALLOCATED_SELF_BYTES;
        cost.sums[i] = is_self ? cost.sums[i] : 0;
    }
    return sj_tree_rows_add_cost(derived, row, &cost);
}

/* Adds the sums of a row to a row of a derived tree. Adds the total only if `is_outermost`: the
 * total of a recursive call is part of the total of an outer call. Returns false if out of
 * memory. */
static bool add_sums(sj_tree_rows *derived, uint32_t row, const sj_tree_rows *tree,
                     uint32_t from_row, bool is_outermost)
{
    sj_tree_row *to = &derived->rows[row];
    const sj_tree_row *from = &tree->rows[from_row];
    const sj_tree_cost *cost = sj_tree_rows_cost(tree, from_row);
    if (from->calls != 0) {
        to->min_ns = to->calls == 0 || from->min_ns < to->min_ns ? from->min_ns : to->min_ns;
        to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
    }
    to->calls += from->calls;
    to->self_ns += from->self_ns;
    to->open_calls += from->open_calls;
    to->total_ns += is_outermost ? from->total_ns : 0;
    to->rank = from->rank;
    return cost == NULL || add_costs(derived, row, cost, is_outermost);
}

static bool contains(const sj_hash_map *functions, int64_t function_id)
{
    return sj_hash_map_find(functions, (uint64_t)function_id, 0) != NULL;
}

bool sj_tree_rows_callees(const sj_tree_rows *tree, const sj_hash_map *functions,
                          int64_t session_id, sj_tree_rows *derived)
{
    uint32_t *places = calloc(tree->count, sizeof(*places)); /* index in `derived`; 0: not there */
    bool succeeded = places != NULL && sj_tree_rows_begin(derived);
    for (size_t i = 1; succeeded && i < tree->count; ++i) {
        const sj_tree_row *row = &tree->rows[i];
        const uint32_t caller = sj_tree_rows_find(tree, row->parent_id);
        const uint32_t parent = caller < i ? places[caller] : 0;
        if (parent != 0 || contains(functions, row->function_id)) {
            places[i] = sj_tree_rows_find_or_add(derived, session_id, parent, row->function_id);
            succeeded = places[i] != 0 && add_sums(derived, places[i], tree, (uint32_t)i, true);
        }
    }
    free(places);
    return succeeded;
}

/* True if the function of a row also occurs among the row's callers. */
static bool is_nested(const sj_tree_rows *tree, uint32_t row)
{
    const int64_t function = tree->rows[row].function_id;
    for (uint32_t caller = sj_tree_rows_find(tree, tree->rows[row].parent_id); caller != 0;
         caller = sj_tree_rows_find(tree, tree->rows[caller].parent_id)) {
        if (tree->rows[caller].function_id == function) {
            return true;
        }
    }
    return false;
}

bool sj_tree_rows_callers(const sj_tree_rows *tree, const sj_hash_map *functions,
                          int64_t session_id, sj_tree_rows *derived)
{
    bool succeeded = sj_tree_rows_begin(derived);
    for (uint32_t i = 1; succeeded && i < tree->count; ++i) {
        if (!contains(functions, tree->rows[i].function_id) || tree->rows[i].is_rare) {
            continue;
        }
        const bool is_outermost = !is_nested(tree, i);
        uint32_t parent = 0;
        for (uint32_t caller = i; succeeded && caller != 0;
             caller = sj_tree_rows_find(tree, tree->rows[caller].parent_id)) {
            parent = sj_tree_rows_find_or_add(derived, session_id, parent,
                                              tree->rows[caller].function_id);
            succeeded = parent != 0 && add_sums(derived, parent, tree, i, is_outermost);
            if (succeeded) {
                derived->rows[parent].rank = tree->rows[caller].rank;
            }
        }
    }
    return succeeded;
}
