/* Block check: what must hold of a decoded CALLS block before its calls can be replayed. */
#ifndef SJ_PROTO_CALLGRAPH_BLOCK_CHECK_H
#define SJ_PROTO_CALLGRAPH_BLOCK_CHECK_H

#include "proto/block/block.h"

typedef struct sj_block_extent {
    uint32_t entered;           /* calls */
    uint32_t min_depth;         /* least number of calls open at any time */
    uint32_t max_depth;         /* most */
    uint32_t max_entered_depth; /* depth of the deepest call entered, from 1; 0: none */
} sj_block_extent;

/* sj_block_check checks that events are balanced against the key-frame, times rise, symbols name
 * functions, endings and gaps are in order and in place. SJ_ECORRUPT. The block must have been
 * decoded with SJ_WANT_ALL. */
SJ_MUST_CHECK sj_status sj_block_check(const sj_block *block, sj_block_extent *extent);

/* sj_block_check_frames checks that times of open calls can be true: starts rise, and no call has
 * more callee time than passed before its open callee began. SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_block_check_frames(const sj_stack_frame *frames, size_t count,
                                              uint64_t first_ticks);

/* sj_block_symbol returns event's symbol: 0 for a LEAVE, else 1 + its function's index. */
static inline uint32_t sj_block_symbol(const sj_block *block, size_t event)
{
    return block->symbols16 != NULL ? block->symbols16[event] : block->symbols32[event];
}

#endif
