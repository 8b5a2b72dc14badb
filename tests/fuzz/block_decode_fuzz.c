/* Any bytes as a block. The crc is made to fit, so that what lies behind it is reached, too. */
#include "proto/block.h"
#include "proto/frame.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

/* Repeats must be true, and there must be room for a word an event. */
static void look_at_repeats(const sj_block *block)
{
    for (size_t i = 0; i < block->repeat_count; i++) {
        const sj_block_repeat *repeat = &block->repeats[i];
        if (repeat->count < SJ_BLOCK_LEAST_REPEAT || repeat->source >= repeat->first ||
            repeat->first + repeat->count > block->header.event_count) {
            abort();
        }
        for (size_t k = 0; k < repeat->count; k++) {
            if (block->symbols16[repeat->first + k] != block->symbols16[repeat->source + k]) {
                abort();
            }
        }
    }
    if (block->repeat_count > 0) {
        memset(block->room, 0x5a, block->header.event_count * sizeof(*block->room));
    }
}

/* Touches everything that the decoder handed out. */
static void look_at(const sj_block *block)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < block->header.event_count; i++) {
        const uint32_t symbol = block->symbols16 != NULL   ? block->symbols16[i]
                                : block->symbols32 != NULL ? block->symbols32[i]
                                                           : 0;
        if (symbol > block->function_count) {
            abort();
        }
        sum += symbol != 0 ? block->functions[symbol - 1] : 0;
        sum += block->ticks != NULL ? block->ticks[i] : 0;
    }
    for (size_t i = 0; i < block->frame_count; i++) {
        sum += block->frames[i].function + block->frames[i].start_ticks;
    }
    for (size_t i = 0; i < block->ending_count; i++) {
        sum += block->endings[i].event;
    }
    for (size_t i = 0; i < block->gap_count; i++) {
        sum += block->gaps[i].calls;
    }
    sink = sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sj_block_decoder *decoder;
    if (decoder == NULL && sj_block_decoder_new(&decoder) != SJ_OK) {
        abort();
    }
    uint8_t *copy = malloc(size + 1);
    if (copy == NULL) {
        return 0;
    }
    sj_block block;
    memcpy(copy, data, size);
    if (size > SJ_BLOCK_HEADER_BYTES) {
        sj_writer crc = sj_writer_of(copy + size - 4, 4);
        sj_write_u32(&crc, sj_crc32c(0, copy, size - 4));
    }
    for (unsigned want = 0; want <= SJ_WANT_ALL; want++) {
        if (sj_block_decode(decoder, (sj_slice){copy, size}, want, &block) == SJ_OK &&
            block.header.kind == SJ_BLOCK_CALLS) {
            look_at(&block);
            look_at_repeats(&block);
        }
    }
    free(copy);
    return 0;
}
