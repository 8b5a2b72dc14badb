/* Counts the calls that were lost in the gaps of a block. Lost calls have numbers in the stream,
 * too. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_LOST_CALLS_H
#define SJ_COLLECTOR_SERVER_QUERY_LOST_CALLS_H

#include "proto/block/block.h"

/* The state of a loop over a block's gaps. All zero: at the start. */
typedef struct sj_lost_calls {
    size_t gap, event; /* index of the next gap, and of the next event */
    uint32_t entered;  /* number of entries before `event` */
    uint64_t lost;     /* number of calls lost before `gap` */
} sj_lost_calls;

/* Returns the number of calls that were lost in the block before the entry of its call number
 * `row`. Pass rows in ascending order. */
static inline uint64_t sj_lost_calls_before(sj_lost_calls *at, const sj_block *block, uint32_t row)
{
    for (; at->gap < block->gap_count; ++at->gap) {
        const sj_gap *gap = &block->gaps[at->gap];
        if (gap->calls == 0) {
            continue; /* a wait for the recorder, without lost calls */
        }
        for (; at->event < gap->before_event; ++at->event) {
            at->entered +=
                (block->symbols16 != NULL ? block->symbols16[at->event]
                                          : block->symbols32[at->event]) != SJ_EVENT_LEAVE;
        }
        if (at->entered > row) {
            break;
        }
        at->lost += gap->calls;
    }
    return at->lost;
}

#endif
