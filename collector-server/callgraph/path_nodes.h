/* Path nodes: the growing table of call paths behind a call graph. One thread at a time. */
#ifndef SJ_COLLECTOR_CALLGRAPH_PATH_NODES_H
#define SJ_COLLECTOR_CALLGRAPH_PATH_NODES_H

#include "collector-server/callgraph/callgraph.h"
#include "collector-server/callgraph/function_histograms.h"

#define SJ_NO_NODE UINT32_MAX

/* The key lies beside the number, so that a search does not touch nodes. */
typedef struct sj_path_place {
    uint32_t parent;
    uint32_t function;
    uint32_t node; /* 0: free */
} sj_path_place;

typedef struct sj_path_nodes {
    sj_path_node *nodes; /* [0] is the root; parents before children */
    uint32_t *followers; /* by sj_path_step: the node entered after it the last time; 0: none */
    uint32_t *distinct;  /* nearest node at or above whose function does not occur above it */
    uint32_t *dirty;
    sj_path_place *table; /* open addressing by (parent, function) */
    uint32_t count;
    uint32_t capacity;
    uint32_t most; /* nodes that there may be */
    uint32_t table_mask;
    uint32_t dirty_count;
    sj_function_histograms functions; /* sums over the nodes that are `folded` */
} sj_path_nodes;

SJ_MUST_CHECK sj_status sj_path_nodes_init(sj_path_nodes *paths);
void sj_path_nodes_deinit(sj_path_nodes *paths); /* safe on a zeroed one, and after a failed init */

/* What happened last on a stack: a node was entered, or left. Programs repeat themselves, so what
 * is called next is guessed to be what was called after the same step before. */
typedef uint32_t sj_path_step;

static inline sj_path_step sj_path_step_entered(uint32_t node)
{
    return 2 * node;
}

static inline sj_path_step sj_path_step_left(uint32_t node)
{
    return 2 * node + 1;
}

/* sj_path_nodes_find_or_add is the slow half of sj_path_nodes_child. */
uint32_t sj_path_nodes_find_or_add(sj_path_nodes *paths, uint32_t parent, uint32_t function,
                                   sj_path_step before);

/* sj_path_nodes_child returns the node of `function` (never 0) called from `parent`, made when it
 * is new; SJ_NO_NODE: see sj_path_nodes_failure. `before` is any step, the better
 * the guess the faster. `nodes` may move. */
static inline uint32_t sj_path_nodes_child(sj_path_nodes *paths, uint32_t parent, uint32_t function,
                                           sj_path_step before)
{
    const uint32_t guess = paths->followers[before];
    const sj_path_node *node = &paths->nodes[guess];
    if (node->function == function && node->parent == parent) {
        return guess; /* the root, which stands for "none", has function 0 */
    }
    return sj_path_nodes_find_or_add(paths, parent, function, before);
}

/* sj_path_nodes_failure tells why there is no node: SJ_ELIMIT (as many as there may be) or
 * SJ_ENOMEM. */
static inline sj_status sj_path_nodes_failure(const sj_path_nodes *paths)
{
    return paths->count >= paths->most ? SJ_ELIMIT : SJ_ENOMEM;
}

/* sj_path_nodes_touch prepares a node for a change of its sums: it is dirty from then on, and its
 * histogram no part of its function's. */
void sj_path_nodes_touch_slow(sj_path_nodes *paths, uint32_t node);
static inline void sj_path_nodes_touch(sj_path_nodes *paths, uint32_t node)
{
    if (!paths->nodes[node].dirty || paths->nodes[node].folded) {
        sj_path_nodes_touch_slow(paths, node);
    }
}

/* sj_path_nodes_fold adds the histograms of dirty nodes to their functions'. SJ_ENOMEM: some are
 * not; it can be called again. */
SJ_MUST_CHECK sj_status sj_path_nodes_fold(sj_path_nodes *paths);

void sj_path_nodes_clean(sj_path_nodes *paths);

/* sj_path_nodes_restore adds a copy of `node`. SJ_ECORRUPT: unknown parent, no function, wrong
 * depth or recursion, or a second node of the same path. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_nodes_restore(sj_path_nodes *paths, const sj_path_node *node);

#endif
