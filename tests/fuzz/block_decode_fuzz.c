/* Decodes arbitrary bytes as a block. The crc is corrected, so that the checks behind it are
 * reached. */
#include "proto/base/crc32c.h"
#include "proto/block/block.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

/* Reads everything that the decoder returned. */
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
        sum += block->untimed != NULL ? block->untimed[symbol] : 0;
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
    for (unsigned want = 0; want <= (SJ_WANT_ALL | SJ_WANT_TAIL_CALLS); want++) {
        if (sj_block_decode(decoder, (sj_slice){copy, size}, want, &block) == SJ_OK &&
            block.header.kind == SJ_BLOCK_CALLS) {
            look_at(&block);
        }
    }
    free(copy);
    return 0;
}
