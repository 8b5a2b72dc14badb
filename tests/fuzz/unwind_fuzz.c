/* Any bytes as .eh_frame: reading and walking end, and stay inside. */
#include "agent/planner/unwind.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_unwind unwind = {0};
    const sj_slice bytes = {.data = data, .size = size};
    if (sj_unwind_read(bytes, 0x1000, &unwind) == SJ_OK) {
        for (size_t i = 0; i < unwind.count && i < 64; i++) {
            const sj_frame_range *range = &unwind.ranges[i];
            sj_frame_walk walk;
            sj_frame_walk_init(&walk, range);
            for (uint64_t k = 0; k < 64 && range->start + k < range->end; k++) {
                (void)sj_frame_walk_at(&walk, range->start + k);
            }
            (void)sj_unwind_find(&unwind, range->start);
        }
    }
    sj_unwind_free(&unwind);
    return 0;
}
