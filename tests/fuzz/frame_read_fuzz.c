/* Reads arbitrary bytes as a spool file, frame after frame, until the first error. */
#include "proto/wire/frame.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_slice rest = {.data = data, .size = size};
    sj_frame_view frame;
    while (sj_frame_read(rest, &frame) == SJ_OK) {
        if (frame.frame_bytes < SJ_FRAME_PREFIX_BYTES || frame.frame_bytes > rest.size ||
            frame.header.size + frame.payload.size + SJ_FRAME_PREFIX_BYTES != frame.frame_bytes) {
            abort();
        }
        rest.data += frame.frame_bytes;
        rest.size -= frame.frame_bytes;
    }
    return 0;
}
