/* The encoding of block outlines in the table block_outlines.
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
    SJ_BLOCK_OUTLINE_LEAST_CALLS = 8192, /* smaller blocks decode as fast as an outline */
    SJ_BLOCK_OUTLINE_MOST_BYTES = 16384
};

/* Returns the maximum size in bytes of the outline of a block. Outlines take at most 3 % of the
 * database, keys and rows included. Returns 0 if the block needs no outline. */
size_t sj_block_outline_budget(const sj_block_header *header, size_t block_bytes);

typedef struct sj_block_outline {
    uint64_t floor_ticks;
    sj_slice calls; /* points into `bytes` */
    uint8_t bytes[SJ_BLOCK_OUTLINE_MOST_BYTES];
} sj_block_outline;

/* Encodes an outline and shortens it until it fits into `budget` bytes. Returns SJ_ELIMIT if it
 * cannot fit, because too many calls are open at the end of the block. */
SJ_MUST_CHECK sj_status sj_block_outline_encode(sj_outline *outline, const sj_block_header *header,
                                                size_t budget, sj_block_outline *encoded);

/* Decodes the calls of an outline, at most SJ_OUTLINE_CALLS + SJ_OUTLINE_OPEN. Returns SJ_ECORRUPT
 * or SJ_EVERSION. */
SJ_MUST_CHECK sj_status sj_block_outline_read_calls(sj_slice bytes, uint64_t first_call,
                                                    uint64_t first_ticks, uint64_t floor_ticks,
                                                    sj_outline_call *calls, size_t *count);

#endif
