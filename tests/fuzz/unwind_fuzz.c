/* Reads arbitrary bytes as .eh_frame. Reading must end, stay inside the bytes, and give every range
 * rows up to its end. Ranges must be found again. */
#include "agent/objfile/eh_frame.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rows(const sj_eh_frame *unwind, const sj_fde *range)
{
    uint64_t start = range->start;
    for (uint32_t i = 0; i < range->row_count; i++) {
        const sj_cfi_row *row = &unwind->rows[range->first_row + i];
        if (row->end <= start || sj_eh_frame_row(unwind, range, start) != row ||
            sj_eh_frame_row(unwind, range, row->end - 1) != row) {
            abort();
        }
        start = row->end;
    }
    if (range->row_count == 0 || start < range->end) {
        abort();
    }
}

/* Ranges may overlap. The search that starts near a range must find the same range as the full
 * search. */
static void check_near(const sj_eh_frame *unwind, const sj_fde *range)
{
    const uint64_t places[] = {range->start - 1, range->start, range->end - 1, range->end};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (sj_eh_frame_find_near(unwind, range, places[i]) !=
            sj_eh_frame_find(unwind, places[i])) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_eh_frame unwind = {0};
    const sj_slice bytes = {.data = data, .size = size};
    if (sj_eh_frame_read(bytes, 0x1000, &unwind) == SJ_OK) {
        for (size_t i = 0; i < unwind.count; i++) {
            check_rows(&unwind, &unwind.ranges[i]);
            check_near(&unwind, &unwind.ranges[i]);
            if (sj_eh_frame_find(&unwind, unwind.ranges[i].start) == NULL) {
                abort();
            }
        }
    }
    sj_eh_frame_free(&unwind);
    return 0;
}
