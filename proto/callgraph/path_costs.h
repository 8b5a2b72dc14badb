/* What the measured calls of a path have cost. The costs of a call are values of the block in which
 * it ended or jumped to another call; one thread at a time. */
#ifndef SJ_PROTO_CALLGRAPH_PATH_COSTS_H
#define SJ_PROTO_CALLGRAPH_PATH_COSTS_H

#include "proto/callgraph/path_nodes.h"

/* The first value of a call's costs in its block. */
typedef struct sj_call_costs_place {
    uint64_t call_index;
    size_t value;
} sj_call_costs_place;

/* Those of a block, by rising call_index. Zeroed is empty. */
typedef struct sj_block_costs {
    sj_call_costs_place *places;
    size_t count, capacity;
} sj_block_costs;

void sj_block_costs_deinit(sj_block_costs *costs); /* safe on a zeroed one */

/* sj_block_costs_list lists the calls of a block that have costs. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_costs_list(sj_block_costs *costs, const sj_block *block);

/* sj_block_costs_count adds what a call of the listed block has cost, if it has costs, to the sums
 * of its path. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_costs_count(const sj_block_costs *costs, const sj_block *block,
                                             uint64_t call_index, sj_path_nodes *paths,
                                             uint32_t node);

/* sj_path_costs_of borrows the sums of a node; NULL: none of its calls was measured. */
const sj_path_cost *sj_path_costs_of(const sj_path_nodes *paths, uint32_t node);

/* sj_path_costs_add adds sums to those of a node. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_path_costs_add(sj_path_nodes *paths, uint32_t node,
                                          const sj_path_cost *cost);

#endif
