/* The durations of one call path: the bins of a histogram (histogram.h) in little memory. A program
 * may have half a million call paths, most of which are called a few times. Their bins are a list;
 * a list of up to SJ_PATH_BINS_WITHIN entries is inside the structure. A bin that counts more than
 * SJ_PATH_COUNT_MOST, or more than SJ_PATH_BINS_MOST bins, convert the list to octaves. A copied
 * structure shares its memory with the original. Not thread-safe. */
#ifndef SJ_PROTO_CALLGRAPH_PATH_HISTOGRAM_H
#define SJ_PROTO_CALLGRAPH_PATH_HISTOGRAM_H

#include "proto/callgraph/histogram.h"

enum {
    SJ_PATH_BINS_WITHIN = 2,
    SJ_PATH_BINS_MOST = 46,   /* most entries of a list */
    SJ_PATH_COUNT_MOST = 255, /* highest count in a list */
    SJ_PATH_COUNT_BITS = 22
};

typedef struct sj_path_histogram {
    union {
        /* entries of a short list: bin << SJ_PATH_COUNT_BITS | count */
        uint32_t within[SJ_PATH_BINS_WITHIN];
        uint32_t *list;               /* owned; used if list_capacity is not 0 */
        sj_histogram_octave *octaves; /* owned */
    } bins;
    uint8_t octave_count; /* 0: the bins are a list */
    uint8_t first_octave;
    uint8_t list_count;
    uint8_t list_capacity;
} sj_path_histogram;

/* Counts `count` values. Errors: SJ_ENOMEM leaves the histogram unchanged. */
SJ_MUST_CHECK sj_status sj_path_histogram_add(sj_path_histogram *histogram, uint64_t value,
                                              uint64_t count);

/* Converts a list to octaves, in which counting is fastest. Errors: SJ_ENOMEM leaves the histogram
 * unchanged. */
SJ_MUST_CHECK sj_status sj_path_histogram_spread(sj_path_histogram *histogram);

/* Adds all values of `from`. Errors: after SJ_ENOMEM only some of them are added. */
SJ_MUST_CHECK sj_status sj_path_histogram_merge(sj_path_histogram *into,
                                                const sj_path_histogram *from);

/* sj_path_histogram_add_to adds the values of `part` to a histogram; SJ_ENOMEM leaves it unchanged.
 * sj_path_histogram_subtract_from subtracts values that were added before. */
SJ_MUST_CHECK sj_status sj_path_histogram_add_to(const sj_path_histogram *part, sj_histogram *into);
void sj_path_histogram_subtract_from(const sj_path_histogram *part, sj_histogram *from);

static inline bool sj_path_histogram_is_empty(const sj_path_histogram *histogram)
{
    return histogram->octave_count == 0 && histogram->list_count == 0;
}

void sj_path_histogram_deinit(sj_path_histogram *histogram); /* A zeroed histogram is allowed */

/* The stored form of histogram.h. Errors of sj_path_histogram_decode: as for
 * sj_histogram_decode. */
size_t sj_path_histogram_encoded_bound(const sj_path_histogram *histogram);
size_t sj_path_histogram_encode(const sj_path_histogram *histogram, uint8_t *output,
                                size_t capacity);
SJ_MUST_CHECK sj_status sj_path_histogram_decode(sj_slice bytes, sj_path_histogram *histogram);

#endif
