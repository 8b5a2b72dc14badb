/* Blocks of a real recording, as they are or cut to a size. Simulated devices send them. */
#ifndef SJ_TESTS_BENCH_RECORDED_BLOCKS_H
#define SJ_TESTS_BENCH_RECORDED_BLOCKS_H

#include "proto/block/block.h"

typedef struct recorded_block {
    uint8_t *bytes; /* for sj_block_set_session */
    size_t size;
    uint32_t calls;
} recorded_block;

typedef struct recorded_blocks {
    recorded_block *blocks; /* one stream, from its first event on */
    size_t count;
    uint32_t function_count; /* function ids are 1 to this */
} recorded_blocks;

/* Cuts the busiest stream of a database of `sojourn record` into up to `count` blocks of `events`
 * events. Times begin after `start_ticks`. Exceptional endings become plain returns. Ends the
 * program with a message on failure. */
void recorded_blocks_load(const char *database, uint32_t events, size_t count, uint64_t start_ticks,
                          recorded_blocks *all);

/* Reads up to `most` blocks of the busiest stream as they were recorded. The stream must be number
 * 1 of its session. Ends the program with a message on failure. */
void recorded_blocks_load_whole(const char *database, size_t most, recorded_blocks *all);

#endif
