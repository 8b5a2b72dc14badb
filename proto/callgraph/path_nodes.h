/* Path nodes: the growing table of call paths behind a call graph. One thread at a time.
 *
 * Most calls of a path are neither shorter nor longer than any before. A node that is dirty and not
 * folded keeps the range of durations that change nothing but its sums and a bin of its histogram:
 * from the least to the greatest so far, as far as these are not slow calls. One comparison decides
 * them from all others (sj_path_node_count_quiet). */
#ifndef SJ_PROTO_CALLGRAPH_PATH_NODES_H
#define SJ_PROTO_CALLGRAPH_PATH_NODES_H

#include "proto/callgraph/callgraph.h"
#include "proto/callgraph/function_histograms.h"

#define SJ_NO_NODE UINT32_MAX

/* What an ordinary call changes or asks for: a line of the cache. */
typedef struct sj_path_line {
    uint64_t calls;
    uint64_t total_ticks;
    uint64_t self_ticks;
    sj_path_histogram histogram;
    uint32_t quiet_low; /* the least of quiet_count durations that change nothing but sums and a */
    uint32_t quiet_count; /* bin of the histogram, which has octaves then */
    uint32_t slow_ticks;  /* calls that are not longer are none of the slow ones */
    uint32_t parent;
    uint32_t function;
    uint32_t depth : 27;
    uint32_t looped : 1; /* on the way from a folded call to the node that it was folded into */
    uint32_t rare : 1;
    uint32_t recursive : 1;
    uint32_t dirty : 1;
    uint32_t folded : 1; /* its histogram is part of its function's */
} sj_path_line;

_Static_assert(sizeof(sj_path_line) == 64, "a line of the cache");

/* The rest, of each node. */
typedef struct sj_path_rest {
    uint64_t min_ticks;
    uint64_t max_ticks;
    uint32_t distinct; /* nearest node at or above whose function does not occur above it */
    uint32_t odd;      /* 1 + place of what few nodes have; 0: it has none of it */
} sj_path_rest;

typedef struct sj_path_odd {
    uint64_t unwound;
    uint64_t untrusted;
    uint32_t cost; /* 1 + place of what its calls have cost; 0: none was measured */
} sj_path_odd;

typedef struct sj_path_nodes {
    sj_path_line *nodes; /* [0] is the root; parents before children; aligned to lines */
    sj_path_rest *rests;
    uint32_t *dirty;
    uint32_t *table; /* nodes by path, 0: free; open addressing */
    uint32_t count;
    uint32_t capacity;
    uint32_t most; /* nodes that there may be */
    uint32_t table_mask;
    uint32_t table_most; /* nodes that the table is for */
    uint32_t dirty_count;
    bool has_loops;                   /* a node is `looped` */
    sj_function_histograms functions; /* sums over the nodes that are `folded` */
    sj_path_odd *odds;
    size_t odd_count, odd_capacity;
    sj_path_cost *costs; /* of the nodes whose calls are measured */
    size_t cost_count, cost_capacity;
} sj_path_nodes;

SJ_MUST_CHECK sj_status sj_path_nodes_init(sj_path_nodes *paths);
void sj_path_nodes_deinit(sj_path_nodes *paths); /* safe on a zeroed one, and after a failed init */

/* Whether a node is that of `function` (never 0, as the root's) called from `parent`. */
static inline bool sj_path_node_is(const sj_path_line *node, uint32_t parent, uint32_t function)
{
    return node->parent == parent && node->function == function && !node->rare;
}

/* The search for a path begins at the sum of the hashes of its two halves. */
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

/* sj_path_nodes_find_or_add is the slow half of sj_path_nodes_child. */
uint32_t sj_path_nodes_find_or_add(sj_path_nodes *paths, uint32_t parent, uint32_t function);

/* sj_path_nodes_child returns the node of `function` (never 0) called from `parent`, made when it
 * is new; SJ_NO_NODE: see sj_path_nodes_failure. `nodes` may move. */
static inline uint32_t sj_path_nodes_child(sj_path_nodes *paths, uint32_t parent, uint32_t function)
{
    const uint32_t node = paths->table[sj_path_home(paths, parent, function)];
    return sj_path_node_is(&paths->nodes[node], parent, function)
               ? node
               : sj_path_nodes_find_or_add(paths, parent, function);
}

/* sj_path_nodes_failure returns why there is no node: SJ_ELIMIT (as many as there may be) or
 * SJ_ENOMEM. */
static inline sj_status sj_path_nodes_failure(const sj_path_nodes *paths)
{
    return paths->count >= paths->most ? SJ_ELIMIT : SJ_ENOMEM;
}

/* sj_path_nodes_get says what is known of a node, whose histogram it borrows. */
sj_path_node sj_path_nodes_get(const sj_path_nodes *paths, uint32_t node);

/* sj_path_nodes_odd borrows what few nodes have, until another node gets it; made when it is new.
 * sj_path_nodes_count_odd counts such calls. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_nodes_odd(sj_path_nodes *paths, uint32_t node, sj_path_odd **odd);
SJ_MUST_CHECK sj_status sj_path_nodes_count_odd(sj_path_nodes *paths, uint32_t node,
                                                uint64_t unwound, uint64_t untrusted);

/* sj_path_nodes_touch prepares a node for a change of its sums: it is dirty from then on, and its
 * histogram no part of its function's. */
void sj_path_nodes_touch(sj_path_nodes *paths, uint32_t node);

/* sj_path_node_count_quiet counts a call and returns true when its duration is in the quiet range
 * of the node; else nothing has changed. */
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

/* sj_path_nodes_count counts a call of any duration. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_nodes_count(sj_path_nodes *paths, uint32_t node, uint64_t duration,
                                            uint64_t self);

/* sj_path_nodes_add_sums adds the sums of another node, its histogram excepted;
 * sj_path_nodes_merge adds all. SJ_ENOMEM: some are not added. */
SJ_MUST_CHECK sj_status sj_path_nodes_add_sums(sj_path_nodes *paths, uint32_t node,
                                               const sj_path_node *sums);
SJ_MUST_CHECK sj_status sj_path_nodes_merge(sj_path_nodes *paths, uint32_t node,
                                            const sj_path_node *sums);

/* sj_path_nodes_quieten finds the quiet range of a node, which may have grown since it was last
 * touched or counted in. */
void sj_path_nodes_quieten(sj_path_nodes *paths, uint32_t node);

/* sj_path_nodes_is_nested returns whether a call of the node lies in another call of its function
 * by the same caller, whose time has its time. */
bool sj_path_nodes_is_nested(const sj_path_nodes *paths, uint32_t node);

/* sj_path_nodes_rare returns the rare node of a function, made when it is new; SJ_NO_NODE: see
 * sj_path_nodes_failure. `nodes` may move. */
uint32_t sj_path_nodes_rare(sj_path_nodes *paths, uint32_t function);

/* sj_path_nodes_fold_rare does the work of sj_callgraph_fold_rare (rare_paths.c). */
SJ_MUST_CHECK sj_status sj_path_nodes_fold_rare(sj_path_nodes *paths, uint32_t keep,
                                                sj_path_folding *folding);

/* sj_path_nodes_settle corrects the totals of looped nodes. Their calls may lie in other calls of
 * the same node, so the sum of durations counts time more than once: the total is the time of their
 * own and the totals of their callees. SJ_ENOMEM leaves all as it was. */
SJ_MUST_CHECK sj_status sj_path_nodes_settle(sj_path_nodes *paths);

/* sj_path_nodes_fold adds the histograms of dirty nodes to their functions'. SJ_ENOMEM: some are
 * not; it can be called again. */
SJ_MUST_CHECK sj_status sj_path_nodes_fold(sj_path_nodes *paths);

void sj_path_nodes_clean(sj_path_nodes *paths);

/* sj_path_nodes_restore adds a copy of `node`. SJ_ECORRUPT: unknown parent, no function, wrong
 * depth or recursion, or a second node of the same path. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_nodes_restore(sj_path_nodes *paths, const sj_path_node *node);

#endif
