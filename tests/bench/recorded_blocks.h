/* Blocks of a real recording, cut to a size: what simulated devices send. */
#ifndef SJ_TESTS_BENCH_RECORDED_BLOCKS_H
#define SJ_TESTS_BENCH_RECORDED_BLOCKS_H

#include "proto/block/block.h"

typedef struct recorded_block {
    uint8_t *bytes; /* for sj_block_set_session */
    size_t size;
    uint32_t calls;
} recorded_block;

typedef struct recorded_blocks {
    recorded_block *blocks; /* one after the other, as one stream from its first event on */
    size_t count;
    uint32_t function_count; /* functions are 1 to this */
} recorded_blocks;

/* recorded_blocks_load takes the busiest stream of a database of `sojourn record` and makes up to
 * `count` blocks of `events` events of it, whose times begin after `start_ticks`; ends the program
 * with a message when it cannot. Exceptional endings and gaps become plain returns. */
void recorded_blocks_load(const char *database, uint32_t events, size_t count, uint64_t start_ticks,
                          recorded_blocks *all);

/* recorded_blocks_load_whole takes the blocks of that stream as they were recorded, at most `most`
 * of them; the stream has to be number 1 of its session. Ends the program likewise. */
void recorded_blocks_load_whole(const char *database, size_t most, recorded_blocks *all);

#endif
