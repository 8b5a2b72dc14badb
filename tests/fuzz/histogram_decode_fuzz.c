#include "proto/callgraph/histogram.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_histogram histogram;
    if (sj_histogram_decode((sj_slice){.data = data, .size = size}, &histogram) != SJ_OK) {
        return 0;
    }
    (void)sj_histogram_quantile(&histogram, 0.5);
    const size_t bound = sj_histogram_encoded_bound(&histogram);
    uint8_t *stored = malloc(bound);
    sj_histogram again;
    if (stored != NULL) {
        const size_t used = sj_histogram_encode(&histogram, stored, bound);
        if (used == 0 ||
            sj_histogram_decode((sj_slice){.data = stored, .size = used}, &again) != SJ_OK) {
            abort(); /* a histogram that was read must be writable and readable again */
        }
        sj_histogram_deinit(&again);
    }
    free(stored);
    sj_histogram_deinit(&histogram);
    return 0;
}
