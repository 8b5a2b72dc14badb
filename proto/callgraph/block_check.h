/* Checks that a decoded CALLS block is consistent, before its calls are replayed. */
#ifndef SJ_PROTO_CALLGRAPH_BLOCK_CHECK_H
#define SJ_PROTO_CALLGRAPH_BLOCK_CHECK_H

#include "proto/block/block.h"

typedef struct sj_block_extent {
    uint32_t entered;   /* calls entered in the block */
    uint32_t min_depth; /* fewest open calls at any time */
    uint32_t max_depth; /* most open calls at any time */
    /* depth of the deepest call entered in the block, from 1; 0: none */
    uint32_t max_entered_depth;
} sj_block_extent;

/* Checks a block and fills in `extent`. Events must balance against the key-frame, times must not
 * fall, and symbols must name functions. Endings and gaps must be in order and in range. The block
 * must have been decoded with SJ_WANT_ALL. Errors: SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_block_check(const sj_block *block, sj_block_extent *extent);

/* Checks that the times of open calls are possible. Starts must not fall, and no call may have more
 * callee time than passed before its open callee began. Functions, flags and call indexes must be
 * valid, too. Errors: SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_block_check_frames(const sj_stack_frame *frames, size_t count,
                                              uint64_t first_ticks);

/* Returns the symbol of an event: 0 for a LEAVE, else 1 + the dictionary index of the function. */
static inline uint32_t sj_block_symbol(const sj_block *block, size_t event)
{
    return block->symbols16 != NULL ? block->symbols16[event] : block->symbols32[event];
}

#endif
