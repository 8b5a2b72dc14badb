/* Durations of a call path: the bins of a histogram (histogram.h) in little memory. A program may
 * have half a million call paths, most of which are called a few times: their bins are a list, the
 * first ones within the structure. A bin that counts often, or many bins, make it octaves. Values
 * that are copied share their memory. One thread at a time. */
#ifndef SJ_PROTO_CALLGRAPH_PATH_HISTOGRAM_H
#define SJ_PROTO_CALLGRAPH_PATH_HISTOGRAM_H

#include "proto/callgraph/histogram.h"

enum {
    SJ_PATH_BINS_WITHIN = 2,
    SJ_PATH_BINS_MOST = 46,   /* of a list */
    SJ_PATH_COUNT_MOST = 255, /* of a bin of a list */
    SJ_PATH_COUNT_BITS = 22
};

typedef struct sj_path_histogram {
    union {
        uint32_t within[SJ_PATH_BINS_WITHIN]; /* of a list: bin << SJ_PATH_COUNT_BITS | count */
        uint32_t *list;                       /* owned, when it has room for more */
        sj_histogram_octave *octaves;         /* owned */
    } bins;
    uint8_t octave_count; /* 0: a list, or empty */
    uint8_t first_octave;
    uint8_t list_count;
    uint8_t list_room;
} sj_path_histogram;

/* sj_path_histogram_add counts `count` values; SJ_ENOMEM leaves it as it was. */
SJ_MUST_CHECK sj_status sj_path_histogram_add(sj_path_histogram *histogram, uint64_t value,
                                              uint64_t count);

/* sj_path_histogram_spread makes octaves of it, if it is none, in which counting is quickest.
 * SJ_ENOMEM leaves it as it was. */
SJ_MUST_CHECK sj_status sj_path_histogram_spread(sj_path_histogram *histogram);

/* sj_path_histogram_merge adds all values of another one. SJ_ENOMEM: some of them. */
SJ_MUST_CHECK sj_status sj_path_histogram_merge(sj_path_histogram *into,
                                                const sj_path_histogram *from);

/* sj_path_histogram_add_to adds its values to a histogram, or takes them away, which were added
 * before. SJ_ENOMEM leaves it as it was. */
SJ_MUST_CHECK sj_status sj_path_histogram_add_to(const sj_path_histogram *part, sj_histogram *into);
void sj_path_histogram_subtract_from(const sj_path_histogram *part, sj_histogram *from);

static inline bool sj_path_histogram_is_empty(const sj_path_histogram *histogram)
{
    return histogram->octave_count == 0 && histogram->list_count == 0;
}

void sj_path_histogram_deinit(sj_path_histogram *histogram); /* safe on a zeroed one */

/* The stored form of histogram.h. sj_path_histogram_decode: as sj_histogram_decode. */
size_t sj_path_histogram_encoded_bound(const sj_path_histogram *histogram);
size_t sj_path_histogram_encode(const sj_path_histogram *histogram, uint8_t *output,
                                size_t capacity);
SJ_MUST_CHECK sj_status sj_path_histogram_decode(sj_slice bytes, sj_path_histogram *histogram);

#endif
