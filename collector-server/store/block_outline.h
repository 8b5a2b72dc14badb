/* The outlines of blocks as the table block_outlines keeps them.
 *
 *   varint version (1) | varint unit | varint count | per call, by rising index:
 *   varint (index - previous; the first: - first_call of the block) |
 *   varint (start - previous; the first: - first_ticks) / unit | varint function |
 *   zigzag varint (depth - previous) | varint 0: open at the end of the block, else
 *   (duration - floor) / unit, and then varint 2 * self / unit, plus 1 and followed by
 *   u8 (ending + 4 * flags) when one of these is not 0
 *
 * Functions are session-wide ids. */
#ifndef SJ_COLLECTOR_SERVER_STORE_BLOCK_OUTLINE_H
#define SJ_COLLECTOR_SERVER_STORE_BLOCK_OUTLINE_H

#include "proto/block/block.h"
#include "proto/callgraph/outline.h"

enum {
    SJ_BLOCK_OUTLINE_VERSION = 1,
    SJ_BLOCK_OUTLINE_LEAST_CALLS = 8192, /* smaller blocks are decoded as fast */
    SJ_BLOCK_OUTLINE_MOST_BYTES = 16384
};

/* sj_block_outline_budget returns how many bytes the outline of a block may take: its share of the
 * database is 3 % at most, its key and its row included. 0: the block needs none. */
size_t sj_block_outline_budget(const sj_block_header *header, size_t block_bytes);

typedef struct sj_block_outline {
    uint64_t floor_ticks;
    sj_slice calls; /* in `bytes` */
    uint8_t bytes[SJ_BLOCK_OUTLINE_MOST_BYTES];
} sj_block_outline;

/* sj_block_outline_encode shortens an outline until it fits. SJ_ELIMIT: it cannot, because too many
 * calls are open at the end of the block. */
SJ_MUST_CHECK sj_status sj_block_outline_encode(sj_outline *outline, const sj_block_header *header,
                                                size_t budget, sj_block_outline *encoded);

/* sj_block_outline_read_calls gives the calls, SJ_OUTLINE_CALLS + SJ_OUTLINE_OPEN of them at most.
 * SJ_ECORRUPT, SJ_EVERSION. */
SJ_MUST_CHECK sj_status sj_block_outline_read_calls(sj_slice bytes, uint64_t first_call,
                                                    uint64_t first_ticks, uint64_t floor_ticks,
                                                    sj_outline_call *calls, size_t *count);

#endif
