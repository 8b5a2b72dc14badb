/* Internal header of the call graph; not included outside this folder. */
#ifndef SJ_PROTO_CALLGRAPH_REPLAY_H
#define SJ_PROTO_CALLGRAPH_REPLAY_H

#include "proto/callgraph/path_costs.h"

enum { SJ_PREFIX_SLOTS = 16 };

typedef struct sj_replay_frame {
    uint64_t start;
    uint64_t child;
    uint32_t flags;  /* flags given at entry */
    uint32_t place;  /* index in `key` for calls of the key-frame, else the event of the ENTER */
    uint32_t caller; /* node of the caller */
} sj_replay_frame;

/* An entry of the block's dictionary; the first one stands for LEAVE. */
typedef struct sj_replay_symbol {
    uint32_t function;
    uint32_t hash; /* sj_path_function_hash */
} sj_replay_symbol;

/* The node of the innermost frame of a stack in DEEP_FRAMES blocks, so that a deep stack is not
 * walked again for each block. */
typedef struct sj_prefix_slot {
    uint32_t stream;
    uint32_t reference; /* 0: empty */
    uint32_t count;
    uint32_t node;
} sj_prefix_slot;

struct sj_callgraph {
    sj_path_nodes paths;
    sj_replay_frame *stack; /* [0] stands for all calls outside the call in [1] */
    size_t stack_capacity;
    sj_replay_symbol *symbols;
    size_t symbol_capacity;
    sj_deferred_exit *late;
    size_t late_capacity;
    sj_stack_frame *key; /* looked-up and inline frames of the current block */
    size_t key_capacity;
    sj_prefix_slot prefixes[SJ_PREFIX_SLOTS];
    uint32_t next_prefix;
    sj_slow_calls slow;
    uint32_t *samples;
    size_t sample_capacity;
    sj_outline outline;
    sj_block_costs costs; /* costs in the current block */
    /* the graph only measures blocks (sj_callgraph_measure); the root is the parent of all nodes */
    bool flat;
    bool lists_open;
    sj_stack_frame *open; /* calls open at the current block's end */
    size_t open_capacity;
};

/* Returns the slot with the node of the block's frames in DEEP_FRAMES blocks, or NULL if it is not
 * known. */
const sj_prefix_slot *sj_callgraph_find_prefix(const sj_callgraph *graph,
                                               const sj_block_header *header);
void sj_callgraph_keep_prefix(sj_callgraph *graph, const sj_block_header *header, uint32_t node);

/* Adds the calls of a checked block. graph->key has `looked_up` frames from DEEP_FRAMES blocks,
 * then the block's inline frames. `looked_up` may be 0 if sj_callgraph_find_prefix finds the node
 * of the former frames and none of them ends in the block. The caller has reserved `stack` and, if
 * wanted, the list of open calls. Fills in the summary. Errors: SJ_ENOMEM, SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_replay_block(sj_callgraph *graph, const sj_block *block,
                                        uint32_t looked_up, sj_block_summary *summary);

#endif
