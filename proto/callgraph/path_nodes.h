/* The growing table of call paths of a call graph. Not thread-safe.
 *
 * Most calls of a path are neither shorter nor longer than all earlier ones. Such a call changes
 * only the node's sums and one bin of its histogram. Each dirty node keeps the range of these
 * durations, its quiet range: from the minimum to the maximum so far, without slow calls. One
 * comparison finds the calls in that range (sj_path_node_count_quiet). */
#ifndef SJ_PROTO_CALLGRAPH_PATH_NODES_H
#define SJ_PROTO_CALLGRAPH_PATH_NODES_H

#include "proto/callgraph/callgraph.h"
#include "proto/callgraph/function_histograms.h"

#define SJ_NO_NODE UINT32_MAX

/* The part of a node that an ordinary call reads or changes: one cache line. */
typedef struct sj_path_line {
    uint64_t calls;
    uint64_t total_ticks;
    uint64_t self_ticks;
    sj_path_histogram histogram;
    uint32_t quiet_low;   /* quiet range: from quiet_low on, quiet_count durations */
    uint32_t quiet_count; /* 0: no quiet range; else the histogram has octaves */
    uint32_t slow_ticks;  /* longer calls may be among the slowest of their function */
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

/* The part of a node that ordinary calls do not need. */
typedef struct sj_path_rest {
    uint64_t min_ticks;
    uint64_t max_ticks;
    /* nearest node, at or above this one, whose function does not occur above it */
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
    uint32_t *table; /* nodes by path, 0: free slot; open addressing */
    uint32_t count;
    uint32_t capacity;
    uint32_t most; /* limit of the number of nodes */
    uint32_t table_mask;
    uint32_t table_most; /* the number of nodes at which the table grows */
    uint32_t dirty_count;
    bool has_loops;                   /* a node is `looped` */
    sj_function_histograms functions; /* sums over the nodes that are `folded` */
    sj_path_extra *extras;
    size_t extra_count, extra_capacity;
    sj_path_cost *costs; /* of nodes with measured calls */
    size_t cost_count, cost_capacity;
} sj_path_nodes;

SJ_MUST_CHECK sj_status sj_path_nodes_init(sj_path_nodes *paths);
/* Zeroed paths are allowed, and paths after a failed init */
void sj_path_nodes_deinit(sj_path_nodes *paths);

/* True if the node is that of `function` (not 0) called from `parent`. */
static inline bool sj_path_node_is(const sj_path_line *node, uint32_t parent, uint32_t function)
{
    return node->parent == parent && node->function == function && !node->rare;
}

/* The search for a path begins at the sum of two hashes: of the parent and of the function. */
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

/* Returns the node of `function` (not 0) called from `parent`, and makes it if it is new. Returns
 * SJ_NO_NODE on failure; see sj_path_nodes_failure. `nodes` may move. */
static inline uint32_t sj_path_nodes_child(sj_path_nodes *paths, uint32_t parent, uint32_t function)
{
    const uint32_t node = paths->table[sj_path_home(paths, parent, function)];
    return sj_path_node_is(&paths->nodes[node], parent, function)
               ? node
               : sj_path_nodes_find_or_add(paths, parent, function);
}

/* Returns why a node could not be made: SJ_ELIMIT if there are too many, else SJ_ENOMEM. */
static inline sj_status sj_path_nodes_failure(const sj_path_nodes *paths)
{
    return paths->count >= paths->most ? SJ_ELIMIT : SJ_ENOMEM;
}

/* Returns the aggregates of a node; its histogram is borrowed. */
sj_path_node sj_path_nodes_get(const sj_path_nodes *paths, uint32_t node);

/* sj_path_nodes_extra returns the entry of a node in `extras`, and makes it if it is new. It is
 * borrowed until another entry is made. sj_path_nodes_count_extra adds to its counters. Errors:
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_nodes_extra(sj_path_nodes *paths, uint32_t node,
                                            sj_path_extra **extra);
SJ_MUST_CHECK sj_status sj_path_nodes_count_extra(sj_path_nodes *paths, uint32_t node,
                                                  uint64_t unwound, uint64_t untrusted);

/* Must be called before a node's sums change: marks it dirty and removes its histogram from its
 * function's. */
void sj_path_nodes_touch(sj_path_nodes *paths, uint32_t node);

/* Counts a call if its duration is in the node's quiet range and returns true. Else returns false
 * and changes nothing. */
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

/* sj_path_nodes_add_sums adds the sums of another node, without its histogram. sj_path_nodes_merge
 * adds its histogram, too. Errors: after SJ_ENOMEM some sums are not added. */
SJ_MUST_CHECK sj_status sj_path_nodes_add_sums(sj_path_nodes *paths, uint32_t node,
                                               const sj_path_node *sums);
SJ_MUST_CHECK sj_status sj_path_nodes_merge(sj_path_nodes *paths, uint32_t node,
                                            const sj_path_node *sums);

/* Recomputes the quiet range of a node. */
void sj_path_nodes_quieten(sj_path_nodes *paths, uint32_t node);

/* True if the node's calls lie in another call of the same function by the same caller, which
 * contains their time. */
bool sj_path_nodes_is_nested(const sj_path_nodes *paths, uint32_t node);

/* Returns the rare node of a function, and makes it if it is new. Returns SJ_NO_NODE on failure;
 * see sj_path_nodes_failure. `nodes` may move. */
uint32_t sj_path_nodes_rare(sj_path_nodes *paths, uint32_t function);

/* Implements sj_callgraph_fold_rare (rare_paths.c). */
SJ_MUST_CHECK sj_status sj_path_nodes_fold_rare(sj_path_nodes *paths, uint32_t keep,
                                                sj_path_folding *folding);

/* Corrects the totals of looped nodes. Their calls may lie in other calls of the same node, so the
 * sum of durations counts time twice. The correct total is the self time plus the totals of the
 * callees. Errors: SJ_ENOMEM leaves all unchanged. */
SJ_MUST_CHECK sj_status sj_path_nodes_settle(sj_path_nodes *paths);

/* Adds the histograms of dirty nodes to those of their functions. Errors: after SJ_ENOMEM some are
 * missing; call it again. */
SJ_MUST_CHECK sj_status sj_path_nodes_fold(sj_path_nodes *paths);

void sj_path_nodes_clean(sj_path_nodes *paths);

/* Appends a copy of `node`. Errors: SJ_ECORRUPT if its parent is unknown, its function is 0, depth
 * or recursion are wrong, or the path exists; SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_nodes_restore(sj_path_nodes *paths, const sj_path_node *node);

#endif
