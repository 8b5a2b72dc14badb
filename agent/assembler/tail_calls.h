/* Tail calls. In the source, a call that ends by a jump to another function lasts until that
 * function returns. So the jump is not the end of the call: the call stays open, and the function
 * it jumped to is nested in it. The frame keeps what the machine did: `jumped_ticks` of a call that
 * has jumped (SJ_COLUMN_JUMPED_FRAMES).
 *
 * The calls of one stack address that have jumped, with the call that runs there, are a chain.
 * State machines and interpreters make chains of millions of calls, so a chain is folded. When a
 * function occurs again, its first call becomes the head of the chain, like the head of a loop. The
 * calls nested in the head end there. All later calls are callees of the head, one after the other.
 * A chain of SJ_TAIL_CHAIN calls without a repetition gets a head, too.
 *
 * Not thread-safe. */
#ifndef SJ_AGENT_ASSEMBLER_TAIL_CALLS_H
#define SJ_AGENT_ASSEMBLER_TAIL_CALLS_H

#include "proto/block/block.h"

#include <stdbool.h>

enum { SJ_TAIL_CHAIN = 8 };

/* Flag of an open call, never stored in a block: the call is the head of its chain. */
#define SJ_TAIL_HEAD (UINT32_C(1) << 31)

/* True if the call at `place` of a chain (0: the outermost) becomes its head when one of its calls
 * jumps to `callee`. The outermost call for which this is true becomes the head. */
static inline bool sj_tail_chain_folds(uint32_t place, uint32_t function, bool is_head,
                                       uint32_t callee)
{
    return is_head || function == callee || place >= SJ_TAIL_CHAIN - 2;
}

/* Returns the depth of the calls that stay open when the innermost of `depth` calls jumps to
 * `callee`, and marks the head of the chain. Returns `depth` outside of chains. */
static inline uint32_t sj_tail_chain_keep(sj_stack_frame *frames, uint32_t depth, uint32_t callee)
{
    uint32_t first = depth - 1;
    while (first > 0 && frames[first - 1].jumped_ticks != 0) {
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
