#include "proto/callgraph/path_nodes.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_CAPACITY = 32,
    LINE_BYTES = 64,
    SMALL_GRAPH = 1 << 13, /* nodes; below this, memory suffices for octaves in each node */
    OFTEN = 2,
    /* nodes; below this, half of the table stays free, so that most paths are found at once */
    FEW_NODES = 1 << 18
};

/* Returns the parent under which a node is found in the table. Rare nodes have one of their own,
 * because the root may have another child with the same function. */
static uint32_t key_parent(const sj_path_line *node)
{
    return node->rare != 0 ? SJ_NO_NODE : node->parent;
}

static bool holds(const sj_path_line *node, uint32_t parent, uint32_t function)
{
    return node->function == function && key_parent(node) == parent;
}

/* Returns the slot of a path, or the free slot where it belongs. The table has more slots than
 * nodes, so the search ends. */
static uint32_t find_place(const sj_path_nodes *paths, uint32_t parent, uint32_t function)
{
    uint32_t place = sj_path_home(paths, parent, function);
    while (paths->table[place] != 0 &&
           !holds(&paths->nodes[paths->table[place]], parent, function)) {
        place = (place + 1) & paths->table_mask;
    }
    return place;
}

static sj_status resize_u32(uint32_t **array, uint32_t capacity)
{
    uint32_t *moved = realloc(*array, (size_t)capacity * sizeof(**array));
    if (moved == NULL) {
        return SJ_ENOMEM;
    }
    *array = moved;
    return SJ_OK;
}

static sj_status grow_nodes(sj_path_nodes *paths)
{
    if (paths->capacity > UINT32_MAX / 8) {
        return SJ_ENOMEM;
    }
    const uint32_t capacity = paths->capacity > 0 ? paths->capacity * 2 : FIRST_CAPACITY;
    sj_path_line *nodes = aligned_alloc(LINE_BYTES, (size_t)capacity * sizeof(*nodes));
    if (nodes == NULL) {
        return SJ_ENOMEM;
    }
    if (paths->count > 0) {
        memcpy(nodes, paths->nodes, paths->count * sizeof(*nodes));
    }
    free(paths->nodes);
    paths->nodes = nodes;
    sj_path_rest *rests = realloc(paths->rests, (size_t)capacity * sizeof(*rests));
    if (rests == NULL) {
        return SJ_ENOMEM;
    }
    paths->rests = rests;
    SJ_TRY(resize_u32(&paths->dirty, capacity));
    paths->capacity = capacity;
    return SJ_OK;
}

/* Doubles the table. It has at least twice as many slots as nodes in a small graph, else at least
 * 4/3. */
static sj_status grow_table(sj_path_nodes *paths)
{
    const uint32_t places = paths->table != NULL ? (paths->table_mask + 1) * 2 : 2 * FIRST_CAPACITY;
    uint32_t *table = calloc(places, sizeof(*table));
    if (table == NULL) {
        return SJ_ENOMEM;
    }
    free(paths->table);
    paths->table = table;
    paths->table_mask = places - 1;
    paths->table_most = places / 2 <= FEW_NODES ? places / 2 : places / 4 * 3;
    for (uint32_t node = 1; node < paths->count; node++) {
        const sj_path_line *line = &paths->nodes[node];
        table[find_place(paths, key_parent(line), line->function)] = node;
    }
    return SJ_OK;
}

/* Makes sure that one more node fits into the arrays and the table. */
static sj_status reserve_node(sj_path_nodes *paths)
{
    if (paths->count == paths->capacity) {
        SJ_TRY(grow_nodes(paths));
    }
    return paths->count == paths->table_most ? grow_table(paths) : SJ_OK;
}

sj_status sj_path_nodes_init(sj_path_nodes *paths)
{
    *paths = (sj_path_nodes){0};
    SJ_TRY(reserve_node(paths));
    paths->nodes[0] = (sj_path_line){0};
    paths->rests[0] = (sj_path_rest){.min_ticks = UINT64_MAX};
    paths->count = 1;
    paths->most = SJ_MOST_PATHS;
    return SJ_OK;
}

void sj_path_nodes_deinit(sj_path_nodes *paths)
{
    for (uint32_t node = 0; node < paths->count; node++) {
        sj_path_histogram_deinit(&paths->nodes[node].histogram);
    }
    free(paths->nodes);
    free(paths->rests);
    free(paths->dirty);
    free(paths->table);
    free(paths->extras);
    free(paths->costs);
    sj_function_histograms_deinit(&paths->functions);
    *paths = (sj_path_nodes){0};
}

/* True if the function occurs at or above a node. Visits only nodes whose function is new on their
 * path, so even in a deep recursion it takes at most as many steps as there are distinct functions.
 */
static bool occurs_above(const sj_path_nodes *paths, uint32_t node, uint32_t function)
{
    for (node = paths->rests[node].distinct; node != 0;
         node = paths->rests[paths->nodes[node].parent].distinct) {
        if (paths->nodes[node].function == function) {
            return true;
        }
    }
    return false;
}

bool sj_path_nodes_is_nested(const sj_path_nodes *paths, uint32_t node)
{
    const sj_path_line *nodes = paths->nodes;
    const uint32_t function = nodes[node].function;
    const uint32_t caller = nodes[nodes[node].parent].function;
    if (nodes[node].recursive == 0) {
        return false;
    }
    for (uint32_t above = nodes[node].parent; nodes[above].parent != 0;
         above = nodes[above].parent) {
        if (nodes[above].function == function && nodes[nodes[above].parent].function == caller) {
            return true;
        }
    }
    return false;
}

static uint32_t append_node(sj_path_nodes *paths, uint32_t parent, uint32_t function,
                            uint32_t place, bool rare)
{
    const uint32_t node = paths->count++;
    const bool recursive = occurs_above(paths, parent, function);
    paths->nodes[node] = (sj_path_line){.parent = parent,
                                        .function = function,
                                        .depth = parent != 0 ? paths->nodes[parent].depth + 1 : 0,
                                        .recursive = recursive,
                                        .rare = rare};
    paths->rests[node] = (sj_path_rest){
        .min_ticks = UINT64_MAX, .distinct = recursive ? paths->rests[parent].distinct : node};
    paths->table[place] = node;
    return node;
}

/* Returns the node that counts a call of `function` from `parent` in a deep recursion, or 0. It is
 * the nearest node above with the same function and the same caller, so that edges stay exact. */
static uint32_t fold_recursion(const sj_path_nodes *paths, uint32_t parent, uint32_t function)
{
    const uint32_t caller = paths->nodes[parent].function;
    for (uint32_t node = parent; node != 0; node = paths->nodes[node].parent) {
        if (paths->nodes[node].function == function &&
            paths->nodes[paths->nodes[node].parent].function == caller) {
            return node;
        }
    }
    return 0;
}

/* Marks the nodes between `node` and `parent`: a call from `parent` was folded into `node`. Does
 * nothing if `node` is 0. */
static void note_loop(sj_path_nodes *paths, uint32_t node, uint32_t parent)
{
    if (node == 0) {
        return;
    }
    paths->has_loops = true;
    paths->nodes[node].looped = 1;
    for (uint32_t at = parent; at != node; at = paths->nodes[at].parent) {
        paths->nodes[at].looped = 1;
    }
}

sj_status sj_path_nodes_settle(sj_path_nodes *paths)
{
    if (!paths->has_loops) {
        return SJ_OK;
    }
    uint64_t *below = calloc(paths->count, sizeof(*below));
    if (below == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t number = paths->count - 1; number != 0; number--) {
        sj_path_line *node = &paths->nodes[number];
        const uint64_t total = node->self_ticks + below[number];
        if (node->looped && node->total_ticks != total) {
            sj_path_nodes_touch(paths, number);
            node->total_ticks = total;
        }
        below[node->parent] += node->total_ticks;
    }
    free(below);
    return SJ_OK;
}

/* Swaps the path in slot `place` into the slot where its search begins, because the latest path is
 * likely to be next. All slots between are used, so the path that it displaces is still found. */
static void move_to_home_slot(sj_path_nodes *paths, uint32_t place, uint32_t parent,
                              uint32_t function)
{
    uint32_t *home = &paths->table[sj_path_home(paths, parent, function)];
    const uint32_t moved = *home;
    *home = paths->table[place];
    paths->table[place] = moved;
}

/* Returns SJ_NO_NODE on failure; see sj_path_nodes_failure. */
static uint32_t add_node(sj_path_nodes *paths, uint32_t parent, uint32_t function, bool rare)
{
    if (paths->count >= paths->most || reserve_node(paths) != SJ_OK) {
        return SJ_NO_NODE;
    }
    const uint32_t place = find_place(paths, rare ? SJ_NO_NODE : parent, function);
    const uint32_t node = append_node(paths, parent, function, place, rare);
    sj_path_nodes_touch(paths, node);
    return node;
}

uint32_t sj_path_nodes_find_or_add(sj_path_nodes *paths, uint32_t parent, uint32_t function)
{
    const uint32_t place = find_place(paths, parent, function);
    uint32_t node = paths->table[place];
    if (node != 0) {
        move_to_home_slot(paths, place, parent, function);
        return node;
    }
    if (paths->nodes[parent].depth + 1 >= SJ_PATH_FOLD_DEPTH) {
        node = fold_recursion(paths, parent, function);
        note_loop(paths, node, parent);
    }
    return node != 0 ? node : add_node(paths, parent, function, false);
}

uint32_t sj_path_nodes_rare(sj_path_nodes *paths, uint32_t function)
{
    const uint32_t node = paths->table[find_place(paths, SJ_NO_NODE, function)];
    return node != 0 ? node : add_node(paths, 0, function, true);
}

sj_path_node sj_path_nodes_get(const sj_path_nodes *paths, uint32_t number)
{
    const sj_path_line *node = &paths->nodes[number];
    const sj_path_rest *rest = &paths->rests[number];
    const sj_path_extra extra =
        rest->extra != 0 ? paths->extras[rest->extra - 1] : (sj_path_extra){0};
    return (sj_path_node){.calls = node->calls,
                          .total_ticks = node->total_ticks,
                          .self_ticks = node->self_ticks,
                          .min_ticks = rest->min_ticks,
                          .max_ticks = rest->max_ticks,
                          .unwound = extra.unwound,
                          .untrusted = extra.untrusted,
                          .parent = node->parent,
                          .function = node->function,
                          .depth = node->depth,
                          .recursive = node->recursive != 0,
                          .rare = node->rare != 0,
                          .dirty = node->dirty != 0,
                          .histogram = node->histogram};
}

sj_status sj_path_nodes_extra(sj_path_nodes *paths, uint32_t number, sj_path_extra **extra)
{
    sj_path_rest *rest = &paths->rests[number];
    if (rest->extra == 0) {
        SJ_TRY(sj_array_reserve(&paths->extras, &paths->extra_capacity, paths->extra_count, 1,
                                sizeof(*paths->extras)));
        paths->extras[paths->extra_count++] = (sj_path_extra){0};
        rest->extra = (uint32_t)paths->extra_count;
    }
    *extra = &paths->extras[rest->extra - 1];
    return SJ_OK;
}

sj_status sj_path_nodes_count_extra(sj_path_nodes *paths, uint32_t number, uint64_t unwound,
                                    uint64_t untrusted)
{
    sj_path_extra *extra;
    if ((unwound | untrusted) == 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_path_nodes_extra(paths, number, &extra));
    extra->unwound += unwound;
    extra->untrusted += untrusted;
    return SJ_OK;
}

void sj_path_nodes_touch(sj_path_nodes *paths, uint32_t number)
{
    sj_path_line *node = &paths->nodes[number];
    if (node->dirty == 0) {
        node->dirty = 1;
        paths->dirty[paths->dirty_count++] = number;
    }
    if (node->folded != 0) {
        sj_function_histograms_subtract(&paths->functions, node->function, &node->histogram);
        node->folded = 0;
    }
}

static void widen_range(sj_path_rest *rest, uint64_t least, uint64_t greatest)
{
    rest->min_ticks = least < rest->min_ticks ? least : rest->min_ticks;
    rest->max_ticks = greatest > rest->max_ticks ? greatest : rest->max_ticks;
}

sj_status sj_path_nodes_count(sj_path_nodes *paths, uint32_t number, uint64_t duration,
                              uint64_t self)
{
    sj_path_line *node = &paths->nodes[number];
    sj_path_nodes_touch(paths, number);
    node->calls++;
    node->total_ticks += duration;
    node->self_ticks += self;
    widen_range(&paths->rests[number], duration, duration);
    if (paths->count < SMALL_GRAPH && node->calls >= OFTEN) {
        SJ_TRY(sj_path_histogram_spread(&node->histogram));
    }
    return sj_path_histogram_add(&node->histogram, duration, 1);
}

sj_status sj_path_nodes_add_sums(sj_path_nodes *paths, uint32_t number, const sj_path_node *sums)
{
    sj_path_line *node = &paths->nodes[number];
    sj_path_nodes_touch(paths, number);
    node->calls += sums->calls;
    node->total_ticks += sums->total_ticks;
    node->self_ticks += sums->self_ticks;
    if (sums->calls > 0) {
        widen_range(&paths->rests[number], sums->min_ticks, sums->max_ticks);
    }
    node->quiet_count = 0;
    return sj_path_nodes_count_extra(paths, number, sums->unwound, sums->untrusted);
}

sj_status sj_path_nodes_merge(sj_path_nodes *paths, uint32_t number, const sj_path_node *sums)
{
    SJ_TRY(sj_path_nodes_add_sums(paths, number, sums));
    return sj_path_histogram_merge(&paths->nodes[number].histogram, &sums->histogram);
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Minimum and maximum may come from a stored node, so the range is also limited to the octaves that
 * the histogram holds. */
void sj_path_nodes_quieten(sj_path_nodes *paths, uint32_t number)
{
    sj_path_line *node = &paths->nodes[number];
    const sj_path_rest *rest = &paths->rests[number];
    const sj_path_histogram *histogram = &node->histogram;
    node->quiet_count = 0;
    if (node->dirty == 0 || node->folded != 0 || histogram->octave_count == 0) {
        return;
    }
    const uint32_t first = (uint32_t)histogram->first_octave << SJ_HISTOGRAM_SUB_BITS;
    const uint32_t bins = (uint32_t)histogram->octave_count << SJ_HISTOGRAM_SUB_BITS;
    const uint64_t held_low = sj_histogram_low(first);
    const uint64_t held_high = sj_histogram_high(first + bins - 1);
    const uint64_t low = rest->min_ticks > held_low ? rest->min_ticks : held_low;
    uint64_t high = least_of(least_of(rest->max_ticks, held_high), node->slow_ticks);
    high = least_of(high, UINT32_MAX - 1); /* so that quiet_count fits */
    if (low <= high) {
        node->quiet_low = (uint32_t)low;
        node->quiet_count = (uint32_t)(high - low + 1);
    }
}

static sj_status fold_node(sj_path_nodes *paths, sj_path_line *node)
{
    if (node->folded == 0) {
        SJ_TRY(sj_function_histograms_add(&paths->functions, node->function, &node->histogram));
        node->folded = 1;
        node->quiet_count = 0;
    }
    return SJ_OK;
}

sj_status sj_path_nodes_fold(sj_path_nodes *paths)
{
    for (uint32_t i = 0; i < paths->dirty_count; i++) {
        SJ_TRY(fold_node(paths, &paths->nodes[paths->dirty[i]]));
    }
    return SJ_OK;
}

void sj_path_nodes_clean(sj_path_nodes *paths)
{
    for (uint32_t i = 0; i < paths->dirty_count; i++) {
        paths->nodes[paths->dirty[i]].dirty = 0;
        paths->nodes[paths->dirty[i]].quiet_count = 0;
    }
    paths->dirty_count = 0;
}

sj_status sj_path_nodes_restore(sj_path_nodes *paths, const sj_path_node *node)
{
    if (node->parent >= paths->count || node->function == 0 || (node->rare && node->parent != 0)) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(reserve_node(paths));
    const uint32_t place =
        find_place(paths, node->rare ? SJ_NO_NODE : node->parent, node->function);
    const uint32_t depth = node->parent != 0 ? paths->nodes[node->parent].depth + 1 : 0;
    if (paths->table[place] != 0 || node->depth != depth ||
        node->recursive != occurs_above(paths, node->parent, node->function)) {
        return SJ_ECORRUPT;
    }
    sj_path_histogram histogram = {0};
    sj_status status = sj_path_histogram_merge(&histogram, &node->histogram);
    if (status != SJ_OK) {
        sj_path_histogram_deinit(&histogram);
        return status;
    }
    const uint32_t number = append_node(paths, node->parent, node->function, place, node->rare);
    sj_path_line *added = &paths->nodes[number];
    added->calls = node->calls;
    added->total_ticks = node->total_ticks;
    added->self_ticks = node->self_ticks;
    added->histogram = histogram;
    paths->rests[number].min_ticks = node->min_ticks;
    paths->rests[number].max_ticks = node->max_ticks;
    SJ_TRY(sj_path_nodes_count_extra(paths, number, node->unwound, node->untrusted));
    return fold_node(paths, added);
}
