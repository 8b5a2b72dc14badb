/* Tail calls: a call that ends by a jump to another function goes on, as its source says, until
 * that function returns. So its end is not an event when it jumps: the call stays open, and the one
 * it jumped to is nested in it. Frames keep what the machine did: `left_ticks` of a call that has
 * jumped (SJ_COLUMN_JUMPED_FRAMES).
 *
 * The calls of one stack address that have jumped, with the one that runs there, are a chain. State
 * machines and interpreters make chains of millions, so a chain is folded: when a function comes
 * again, its first call becomes the head of the chain, as that of a loop. What the head had below
 * it ends there, and all that follow are callees of the head, one after the other. A chain of
 * SJ_TAIL_CHAIN calls without a repetition gets a head likewise.
 *
 * One thread at a time. */
#ifndef SJ_AGENT_ASSEMBLER_TAIL_CALLS_H
#define SJ_AGENT_ASSEMBLER_TAIL_CALLS_H

#include "proto/block/block.h"

#include <stdbool.h>

enum { SJ_TAIL_CHAIN = 8 };

/* In the flags of an open call, in no block: it is the head of its chain. */
#define SJ_TAIL_HEAD (UINT32_C(1) << 31)

/* sj_tail_chain_folds: the call at `place` of a chain (0: the outermost) is its head from now on,
 * as one of its calls jumps to `callee`. The outermost of which this is true is. */
static inline bool sj_tail_chain_folds(uint32_t place, uint32_t function, bool is_head,
                                       uint32_t callee)
{
    return is_head || function == callee || place >= SJ_TAIL_CHAIN - 2;
}

/* sj_tail_chain_keep returns where the calls end that stay open when the innermost of `depth` calls
 * jumps to `callee`, and notes the head. Outside of chains it is `depth`. */
static inline uint32_t sj_tail_chain_keep(sj_stack_frame *frames, uint32_t depth, uint32_t callee)
{
    uint32_t first = depth - 1;
    while (first > 0 && frames[first - 1].left_ticks != 0) {
        first--;
    }
    for (uint32_t i = first; i < depth; i++) {
        const bool is_head = (frames[i].flags & SJ_TAIL_HEAD) != 0;
        if (sj_tail_chain_folds(i - first, frames[i].function, is_head, callee)) {
            frames[i].flags |= SJ_TAIL_HEAD;
            return i + 1;
        }
    }
    return depth;
}

#endif
