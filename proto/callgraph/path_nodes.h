/* Table of the call paths of a call graph: one node per path. Not thread-safe.
 *
 * Most calls are neither shorter nor longer than all earlier calls of their path. They change only
 * the node's sums and one bin of its histogram. So a dirty node has a quiet range of durations:
 * from the minimum to the maximum so far, without the durations of slow calls. One comparison
 * decides whether a call is in the quiet range (sj_path_node_count_quiet). */
#ifndef SJ_PROTO_CALLGRAPH_PATH_NODES_H
#define SJ_PROTO_CALLGRAPH_PATH_NODES_H

#include "proto/callgraph/callgraph.h"
#include "proto/callgraph/function_histograms.h"

#define SJ_NO_NODE UINT32_MAX

/* The part of a node that every call reads or changes: one cache line. */
typedef struct sj_path_line {
    uint64_t calls;
    uint64_t total_ticks;
    uint64_t self_ticks;
    sj_path_histogram histogram;
    uint32_t quiet_low;   /* shortest duration of the quiet range, in ticks */
    uint32_t quiet_count; /* length of the quiet range; 0: none; else the histogram has octaves */
    uint32_t slow_ticks;  /* a longer call may be one of the slowest of its function */
    uint32_t parent;
    uint32_t function;
    uint32_t depth : 27;
    uint32_t looped : 1; /* on the path from a folded call to the node that counts it */
    uint32_t rare : 1;
    uint32_t recursive : 1;
    uint32_t dirty : 1;
    uint32_t folded : 1; /* the histogram is part of its function's histogram */
} sj_path_line;

_Static_assert(sizeof(sj_path_line) == 64, "a line of the cache");

/* The part of a node that calls in the quiet range do not need. */
typedef struct sj_path_rest {
    uint64_t min_ticks;
    uint64_t max_ticks;
    /* the nearest, of this node and its ancestors, whose function none of its own ancestors has */
    uint32_t distinct;
    uint32_t extra; /* 1 + index in `extras`; 0: none */
} sj_path_rest;

typedef struct sj_path_extra {
    uint64_t unwound;
    uint64_t untrusted;
    uint32_t cost; /* 1 + index in `costs`; 0: no call was measured */
} sj_path_extra;

typedef struct sj_path_nodes {
    sj_path_line *nodes; /* [0] is the root; parents come before children; aligned to cache lines */
    sj_path_rest *rests;
    uint32_t *dirty;
    uint32_t *table; /* hash table of nodes by path, with open addressing; 0: free slot */
    uint32_t count;
    uint32_t capacity;
    uint32_t most; /* limit of the number of nodes */
    uint32_t table_mask;
    uint32_t table_most; /* number of nodes at which the table grows */
    uint32_t dirty_count;
    bool has_loops;                   /* at least one node is `looped` */
    sj_function_histograms functions; /* sums of the histograms of `folded` nodes */
    sj_path_extra *extras;
    size_t extra_count, extra_capacity;
    sj_path_cost *costs; /* one for each node with measured calls */
    size_t cost_count, cost_capacity;
} sj_path_nodes;

/* Makes a table that has only the root. The caller calls sj_path_nodes_deinit, also after an error.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_path_nodes_init(sj_path_nodes *paths);
/* Frees the memory of `paths`. Accepts zeroed paths, and paths whose init failed. */
void sj_path_nodes_deinit(sj_path_nodes *paths);

/* True if the node counts the calls of `function` (not 0) from `parent`. False for rare nodes. */
static inline bool sj_path_node_is(const sj_path_line *node, uint32_t parent, uint32_t function)
{
    return node->parent == parent && node->function == function && !node->rare;
}

/* Returns the parent's part of a path's hash. The search for a path begins at the slot of `table`
 * that sj_path_home returns. The number of that slot is the sum of two hashes: one of the parent,
 * one of the function. */
static inline uint32_t sj_path_parent_hash(uint32_t parent)
{
    return parent * UINT32_C(0x7f4a7c15);
}

static inline uint32_t sj_path_function_hash(uint32_t function)
{
    return (uint32_t)((function * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static inline uint32_t sj_path_home(const sj_path_nodes *paths, uint32_t parent, uint32_t function)
{
    return (sj_path_parent_hash(parent) + sj_path_function_hash(function)) & paths->table_mask;
}

/* The slow path of sj_path_nodes_child. */
uint32_t sj_path_nodes_find_or_add(sj_path_nodes *paths, uint32_t parent, uint32_t function);

/* Returns the node for calls of `function` (not 0) from `parent`. Creates the node if it is
 * missing. Returns SJ_NO_NODE on failure; see sj_path_nodes_failure. `nodes` may move. */
static inline uint32_t sj_path_nodes_child(sj_path_nodes *paths, uint32_t parent, uint32_t function)
{
    const uint32_t node = paths->table[sj_path_home(paths, parent, function)];
    return sj_path_node_is(&paths->nodes[node], parent, function)
               ? node
               : sj_path_nodes_find_or_add(paths, parent, function);
}

/* Returns why a node was not created: SJ_ELIMIT if there are `most` nodes, else SJ_ENOMEM. */
static inline sj_status sj_path_nodes_failure(const sj_path_nodes *paths)
{
    return paths->count >= paths->most ? SJ_ELIMIT : SJ_ENOMEM;
}

/* Returns the aggregates of a node. The histogram is borrowed from the node. */
sj_path_node sj_path_nodes_get(const sj_path_nodes *paths, uint32_t node);

/* sj_path_nodes_extra returns a node's entry in `extras` and creates a missing entry. The entry is
 * valid until another entry is created. sj_path_nodes_count_extra adds to the entry's counters.
 * Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_nodes_extra(sj_path_nodes *paths, uint32_t node,
                                            sj_path_extra **extra);
SJ_MUST_CHECK sj_status sj_path_nodes_count_extra(sj_path_nodes *paths, uint32_t node,
                                                  uint64_t unwound, uint64_t untrusted);

/* Marks a node as dirty and subtracts its histogram from the histogram of its function. Must be
 * called before the node's sums change. */
void sj_path_nodes_touch(sj_path_nodes *paths, uint32_t node);

/* Counts a call and returns true if its duration is in the node's quiet range. Otherwise returns
 * false and changes nothing. */
static inline bool sj_path_node_count_quiet(sj_path_line *node, uint64_t duration, uint64_t self)
{
    if (duration - node->quiet_low >= node->quiet_count) {
        return false;
    }
    node->calls++;
    node->total_ticks += duration;
    node->self_ticks += self;
    uint64_t *bins = node->histogram.bins.octaves->count;
    bins[sj_histogram_bin(duration) -
         ((uint32_t)node->histogram.first_octave << SJ_HISTOGRAM_SUB_BITS)]++;
    return true;
}

/* Counts a call of any duration. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_nodes_count(sj_path_nodes *paths, uint32_t node, uint64_t duration,
                                            uint64_t self);

/* sj_path_nodes_add_sums adds the sums of another node to `node`. sj_path_nodes_merge adds the sums
 * and the histogram. After SJ_ENOMEM, only some of them are added. */
SJ_MUST_CHECK sj_status sj_path_nodes_add_sums(sj_path_nodes *paths, uint32_t node,
                                               const sj_path_node *sums);
SJ_MUST_CHECK sj_status sj_path_nodes_merge(sj_path_nodes *paths, uint32_t node,
                                            const sj_path_node *sums);

/* Recomputes the quiet range of a node. */
void sj_path_nodes_quieten(sj_path_nodes *paths, uint32_t node);

/* True if an ancestor of the node has the same function and the same caller. The total of that
 * ancestor contains the time of this node's calls. */
bool sj_path_nodes_is_nested(const sj_path_nodes *paths, uint32_t node);

/* Returns the rare node of a function: the child of the root that stands for the function as the
 * caller in rare paths. Creates the node if it is missing. Returns SJ_NO_NODE on failure; see
 * sj_path_nodes_failure. `nodes` may move. */
uint32_t sj_path_nodes_rare(sj_path_nodes *paths, uint32_t function);

/* Implements sj_callgraph_fold_rare (rare_paths.c). Returns SJ_ENOMEM or SJ_ELIMIT; `paths` then
 * has its old nodes. */
SJ_MUST_CHECK sj_status sj_path_nodes_fold_rare(sj_path_nodes *paths, uint32_t keep,
                                                sj_path_folding *folding);

/* Corrects the totals of looped nodes. Calls of a looped node may be nested in each other, so the
 * sum of their durations counts some time twice. The correct total is the node's self time plus the
 * totals of its callees. On SJ_ENOMEM, all nodes stay unchanged. */
SJ_MUST_CHECK sj_status sj_path_nodes_settle(sj_path_nodes *paths);

/* Adds the histograms of dirty nodes to the histograms of their functions. After SJ_ENOMEM, some
 * histograms are not added yet; a second call adds them. */
SJ_MUST_CHECK sj_status sj_path_nodes_fold(sj_path_nodes *paths);

/* Marks all nodes as clean and removes the quiet ranges of those that were dirty. */
void sj_path_nodes_clean(sj_path_nodes *paths);

/* Appends a copy of `node`. Returns SJ_ECORRUPT if the path exists, or if the node's parent,
 * function, depth or flags are not valid. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_nodes_restore(sj_path_nodes *paths, const sj_path_node *node);

#endif
