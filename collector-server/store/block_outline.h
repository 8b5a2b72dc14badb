/* The encoding of block outlines in the table block_outlines.
 *
 *   varint version (1) | varint unit (ticks) | varint count | then for each call, by rising index:
 *   varint index - previous index (for the first call: - first_call of the block) |
 *   varint (start - previous start) / unit (for the first call: - first_ticks of the block) |
 *   varint function (session-wide id) |
 *   zigzag varint depth - previous depth (for the first call: - 0) |
 *   varint (duration - floor_ticks) / unit; 0: the call is open at the end of the block, and the
 *   rest is missing |
 *   varint 2 * (self time / unit) + b |
 *   if b is 1: u8 ending + 4 * flags; b is 0 if ending and flags are 0 */
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
 * database, keys and rows included. Returns 0 if the block gets no outline: it has few calls, too
 * few bytes, or is not a CALLS block. */
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
