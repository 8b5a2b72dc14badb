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

/* The node of a stored stack, so that a deep stack is not walked again for each block. */
typedef struct sj_prefix_slot {
    uint32_t stream;
    uint32_t reference; /* 0: empty */
    uint32_t count;
    uint32_t node;
} sj_prefix_slot;

struct sj_callgraph {
    sj_path_nodes paths;
    sj_replay_frame *stack; /* [0] is a sentinel for all calls below */
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
    bool flat;            /* only measures blocks: all functions are children of the root */
    bool lists_open;
    sj_stack_frame *open; /* calls open at the current block's end */
    size_t open_capacity;
};

/* Returns the node of the block's stored stack, or NULL if it is not known. */
const sj_prefix_slot *sj_callgraph_find_prefix(const sj_callgraph *graph,
                                               const sj_block_header *header);
void sj_callgraph_keep_prefix(sj_callgraph *graph, const sj_block_header *header, uint32_t node);

/* Adds the calls of a checked block. Its open calls are in graph->key; `looked_up` of them come
 * from stored stacks. The caller has reserved `stack` and, if wanted, the list of open calls. Fills
 * in the summary. Errors: SJ_ENOMEM, SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_replay_block(sj_callgraph *graph, const sj_block *block,
                                        uint32_t looked_up, sj_block_summary *summary);

#endif
