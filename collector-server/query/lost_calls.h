/* How many calls were lost before an ENTER of a block: gaps skip numbers of calls. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_LOST_CALLS_H
#define SJ_COLLECTOR_SERVER_QUERY_LOST_CALLS_H

#include "proto/block/block.h"

/* One walk over a block's gaps; zeroed is at its start. */
typedef struct sj_lost_calls {
    size_t gap, event;
    uint32_t entered;
    uint64_t lost;
} sj_lost_calls;

/* sj_lost_calls_before returns how many were lost before the ENTER numbered `row`; asked of rising
 * ones. */
static inline uint64_t sj_lost_calls_before(sj_lost_calls *at, const sj_block *block, uint32_t row)
{
    for (; at->gap < block->gap_count; ++at->gap) {
        const sj_gap *gap = &block->gaps[at->gap];
        if (gap->calls == 0) {
            continue; /* the thread waited */
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
