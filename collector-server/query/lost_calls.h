/* Counts the calls that were lost before an ENTER of a block. Gaps skip numbers of calls. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_LOST_CALLS_H
#define SJ_COLLECTOR_SERVER_QUERY_LOST_CALLS_H

#include "proto/block/block.h"

/* A walk over a block's gaps; all zero: at the start. */
typedef struct sj_lost_calls {
    size_t gap, event;
    uint32_t entered;
    uint64_t lost;
} sj_lost_calls;

/* Returns the number of calls lost before the ENTER number `row`; call it with rising numbers. */
static inline uint64_t sj_lost_calls_before(sj_lost_calls *at, const sj_block *block, uint32_t row)
{
    for (; at->gap < block->gap_count; ++at->gap) {
        const sj_gap *gap = &block->gaps[at->gap];
        if (gap->calls == 0) {
            continue; /* the thread only waited */
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
