#include "collector-server/import/call_pairs.h"

#include "proto/base/array.h"

#include <stdlib.h>

#define MOST_COST (UINT64_MAX / 4)

enum {
    MOST_DEPTH = 200,
    ROUNDING_PART = 100, /* a smaller part of a function's cost without a caller is not a call */
    MOST_PATHS = 256 * 1024,
    LEAST_PART = 128 * 1024 /* a path has at least this part of the whole cost, or its calls wait */
};

/* The costs of a function, and its pairs. */
typedef struct pair_function {
    uint64_t all;      /* inclusive cost of all its calls: its own, and its pairs as a caller */
    uint64_t received; /* sum of the costs of its pairs as a callee */
    uint64_t seen;     /* cost of its paths so far */
    uint64_t given;    /* own cost of its paths so far */
    size_t first, end; /* its pairs as a caller, in `by_caller` */
} pair_function;

typedef struct pair_tree {
    sj_call_pairs *pairs;
    sj_import_log *log;
    pair_function *functions; /* by function less 1 */
    size_t *by_caller;        /* indexes of pairs */
    uint64_t least_cost;      /* a path costs at least this */
} pair_tree;

void sj_call_pairs_deinit(sj_call_pairs *pairs)
{
    free(pairs->pairs);
    free(pairs->own);
    sj_hash_map_deinit(&pairs->by_functions);
    *pairs = (sj_call_pairs){0};
}

static sj_status add(uint64_t *sum, uint64_t more)
{
    if (more > MOST_COST || *sum > MOST_COST - more) {
        return SJ_ELIMIT;
    }
    *sum += more;
    return SJ_OK;
}

sj_status sj_call_pairs_add_own(sj_call_pairs *pairs, uint32_t function, uint64_t cost)
{
    if (function > pairs->own_capacity) {
        SJ_TRY(sj_array_reserve(&pairs->own, &pairs->own_capacity, pairs->own_capacity,
                                function - pairs->own_capacity, sizeof(*pairs->own)));
    }
    return add(&pairs->own[function - 1], cost);
}

sj_status sj_call_pairs_add_calls(sj_call_pairs *pairs, uint32_t caller, uint32_t callee,
                                  uint64_t calls, uint64_t cost)
{
    const uint64_t key = (uint64_t)caller << 32 | callee;
    const sj_hash_entry *known = sj_hash_map_find(&pairs->by_functions, key, 1);
    uint32_t at = known != NULL ? known->first : (uint32_t)pairs->count;
    if (known == NULL) {
        SJ_TRY(sj_array_reserve(&pairs->pairs, &pairs->capacity, pairs->count, 1,
                                sizeof(*pairs->pairs)));
        SJ_TRY(sj_hash_map_put(&pairs->by_functions,
                               &(sj_hash_entry){.key = key, .sub = 1, .first = at}));
        pairs->pairs[pairs->count++] = (sj_call_pair){.caller = caller, .callee = callee};
    }
    SJ_TRY(add(&pairs->pairs[at].calls, calls));
    return add(&pairs->pairs[at].cost, cost);
}

static uint64_t own_cost(const sj_call_pairs *pairs, uint32_t function)
{
    return function <= pairs->own_capacity ? pairs->own[function - 1] : 0;
}

/* Sums the costs of each function, and sorts the pairs by caller. */
static sj_status sort_pairs(pair_tree *tree)
{
    const sj_call_pairs *pairs = tree->pairs;
    uint64_t whole = 0;
    for (size_t i = 0; i < pairs->count; i++) {
        pair_function *caller = &tree->functions[pairs->pairs[i].caller - 1];
        caller->end++;
        SJ_TRY(add(&caller->all, pairs->pairs[i].cost));
        SJ_TRY(add(&tree->functions[pairs->pairs[i].callee - 1].received, pairs->pairs[i].cost));
    }
    size_t before = 0;
    for (uint32_t i = 1; i <= tree->log->function_count; i++) {
        pair_function *one = &tree->functions[i - 1];
        const size_t count = one->end;
        one->first = one->end = before;
        before += count;
        SJ_TRY(add(&whole, own_cost(pairs, i)));
        SJ_TRY(add(&one->all, own_cost(pairs, i)));
    }
    for (size_t i = 0; i < pairs->count; i++) {
        tree->by_caller[tree->functions[pairs->pairs[i].caller - 1].end++] = i;
    }
    tree->least_cost = whole / LEAST_PART;
    return SJ_OK;
}

/* Returns what is to be given of `sum` when `part` of `whole` was seen, less what was given. */
static uint64_t next_part(uint64_t sum, uint64_t part, uint64_t whole, uint64_t given)
{
    const uint64_t due = part >= whole ? sum : (uint64_t)((unsigned __int128)sum * part / whole);
    return due > given ? due - given : 0;
}

static sj_status add_path(const pair_tree *tree, uint32_t parent, uint32_t function, uint64_t calls,
                          uint64_t own, uint64_t total, uint32_t *path)
{
    SJ_TRY(sj_import_log_path(tree->log, parent, function, path));
    sj_import_path *made = &tree->log->paths[*path - 1];
    made->total += total > own ? total : own;
    if (calls == 0) { /* the calls are at other paths of the function */
        made->weight += own;
        tree->log->weight += own;
        return SJ_OK;
    }
    SJ_TRY(sj_import_log_samples(tree->log, *path, calls, own));
    made->least = made->most = made->samples != 0 ? made->total / made->samples : 0;
    return SJ_OK;
}

/* Adds a path of a function, and the paths below it. `cost` is its inclusive cost. */
static sj_status grow(pair_tree *tree, uint32_t parent, uint32_t function, uint64_t calls,
                      uint64_t cost, int depth)
{
    pair_function *one = &tree->functions[function - 1];
    uint32_t path;
    one->seen += cost;
    uint64_t own = next_part(own_cost(tree->pairs, function), one->seen, one->all, one->given);
    own = own < cost ? own : cost;
    one->given += own;
    SJ_TRY(add_path(tree, parent, function, calls, own, cost, &path));
    uint64_t left = cost - own;
    const uint64_t seen = one->seen;
    for (size_t i = one->first; i < one->end; i++) {
        sj_call_pair *pair = &tree->pairs->pairs[tree->by_caller[i]];
        uint64_t part = next_part(pair->cost, seen, one->all, pair->given_cost);
        part = part < left ? part : left;
        if (part < tree->least_cost || depth == MOST_DEPTH || tree->log->path_count >= MOST_PATHS ||
            (part == 0 && pair->cost != 0)) {
            continue;
        }
        pair->given_cost += part;
        left -= part;
        const uint64_t more =
            next_part(pair->calls, pair->given_cost, pair->cost, pair->given_calls);
        pair->given_calls += more;
        SJ_TRY(grow(tree, path, pair->callee, more, part, depth + 1));
    }
    return SJ_OK;
}

/* Adds the functions that no other calls, with all below them, then what is left of all others. */
static sj_status grow_all(pair_tree *tree)
{
    for (uint32_t i = 1; i <= tree->log->function_count; i++) {
        const pair_function *one = &tree->functions[i - 1];
        if (one->all > one->received) {
            const uint64_t rest = one->all - one->received;
            const bool is_rounding = rest < one->all / ROUNDING_PART;
            SJ_TRY(grow(tree, 0, i, is_rounding ? 0 : 1, rest, 0));
        }
    }
    for (size_t i = 0; i < tree->pairs->count; i++) {
        const sj_call_pair *pair = &tree->pairs->pairs[i];
        uint32_t path;
        if (pair->calls != pair->given_calls) {
            SJ_TRY(add_path(tree, 0, pair->callee, pair->calls - pair->given_calls, 0, 0, &path));
        }
    }
    for (uint32_t i = 1; i <= tree->log->function_count; i++) {
        const uint64_t left = own_cost(tree->pairs, i) - tree->functions[i - 1].given;
        uint32_t path;
        if (left != 0) {
            SJ_TRY(add_path(tree, 0, i, 0, left, left, &path));
        }
    }
    return SJ_OK;
}

/* Gives a path without callees the cost that it has of its own, so that rounding cannot make both
 * differ. */
static sj_status trim_leaves(const pair_tree *tree)
{
    const sj_import_log *log = tree->log;
    bool *has_callees = calloc(log->path_count + 1, sizeof(*has_callees));
    if (has_callees == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = log->path_count; i > 0; i--) {
        sj_import_path *path = &log->paths[i - 1];
        has_callees[path->parent] = true;
        if (!has_callees[i]) {
            path->total = path->weight;
            path->least = path->most = path->samples != 0 ? path->total / path->samples : 0;
        }
    }
    free(has_callees);
    return SJ_OK;
}

sj_status sj_call_pairs_store(sj_call_pairs *pairs, sj_import_log *log)
{
    pair_tree tree = {.pairs = pairs,
                      .log = log,
                      .functions = calloc(log->function_count + 1, sizeof(pair_function)),
                      .by_caller = calloc(pairs->count + 1, sizeof(size_t))};
    sj_status status =
        tree.functions != NULL && tree.by_caller != NULL ? sort_pairs(&tree) : SJ_ENOMEM;
    if (status == SJ_OK) {
        status = grow_all(&tree);
    }
    if (status == SJ_OK) {
        status = trim_leaves(&tree);
    }
    free(tree.functions);
    free(tree.by_caller);
    return status;
}
