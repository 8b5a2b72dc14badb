/* Costs of measured calls, added up per call path. The costs of a call are values of the block in
 * which it ended or jumped to another call. Not thread-safe. */
#ifndef SJ_PROTO_CALLGRAPH_PATH_COSTS_H
#define SJ_PROTO_CALLGRAPH_PATH_COSTS_H

#include "proto/callgraph/path_nodes.h"

/* Where a call's costs begin among the values of its block. */
typedef struct sj_call_costs_place {
    uint64_t call_index;
    size_t value;
} sj_call_costs_place;

/* The calls of a block that have costs, by rising call_index. Zeroed is empty. */
typedef struct sj_block_costs {
    sj_call_costs_place *places;
    size_t count, capacity;
} sj_block_costs;

void sj_block_costs_deinit(sj_block_costs *costs); /* A zeroed object is allowed */

/* Lists the calls of a block that have costs. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_costs_list(sj_block_costs *costs, const sj_block *block);

/* Adds the costs of one call of the listed block to the sums of its path. Does nothing if the call
 * has no costs, or if `node` is 0. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_costs_count(const sj_block_costs *costs, const sj_block *block,
                                             uint64_t call_index, sj_path_nodes *paths,
                                             uint32_t node);

/* Returns the sums of a node, borrowed, or NULL if none of its calls was measured. */
const sj_path_cost *sj_path_costs_of(const sj_path_nodes *paths, uint32_t node);

/* Adds `cost` to the sums of a node. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_costs_add(sj_path_nodes *paths, uint32_t node,
                                          const sj_path_cost *cost);

#endif
