/* Reads arbitrary bytes as the outline of a block. Three numbers precede it: first call, first
 * ticks, floor. */
#include "collector-server/store/block_outline.h"
#include "proto/base/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sj_outline_call calls[SJ_OUTLINE_CALLS + SJ_OUTLINE_OPEN];
    sj_reader reader = sj_reader_of(data, size);
    const uint64_t first_call = sj_read_u64(&reader);
    const uint64_t first_ticks = sj_read_u64(&reader);
    const uint64_t floor_ticks = sj_read_u64(&reader);
    const size_t left = sj_reader_left(&reader);
    const sj_slice bytes = {.data = sj_read_bytes(&reader, left), .size = left};
    size_t count = 0;
    if (reader.bad || sj_block_outline_read_calls(bytes, first_call, first_ticks, floor_ticks,
                                                  calls, &count) != SJ_OK) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (calls[i].depth > UINT32_MAX / 2) {
            abort();
        }
    }
    return 0;
}
