/* Mergeable histogram of durations: log-linear, 16 bins an octave, so that a quantile is at most
 * 1/32 = 3.1 % off (middle of the bin). Octaves are allocated when first used, so that a call path
 * whose calls take alike costs little. Stored form: varint version (1), then for each non-empty bin
 * varint (bin - previous bin) and varint count: about 2-3 bytes a bin. Unit: that of its values. */
#ifndef SJ_PROTO_CALLGRAPH_HISTOGRAM_H
#define SJ_PROTO_CALLGRAPH_HISTOGRAM_H

#include "proto/base/cursor.h"

#include <stdbool.h>

enum {
    SJ_HISTOGRAM_SUB_BITS = 4,
    SJ_HISTOGRAM_OCTAVES = 61, /* values of 64 bits */
    SJ_HISTOGRAM_BINS = SJ_HISTOGRAM_OCTAVES << SJ_HISTOGRAM_SUB_BITS,
    SJ_HISTOGRAM_SHORT = 2048
};

/* The bins of the values below SJ_HISTOGRAM_SHORT, which are most durations. */
extern const uint16_t sj_histogram_short_bins[SJ_HISTOGRAM_SHORT];

typedef struct sj_histogram_octave {
    uint64_t count[1 << SJ_HISTOGRAM_SUB_BITS];
} sj_histogram_octave;

typedef struct sj_histogram {
    uint32_t
        first_octave; /* number of the lowest octave held; meaningless when octave_count is 0 */
    uint32_t octave_count;        /* octaves held, consecutive */
    sj_histogram_octave *octaves; /* owned */
} sj_histogram;

/* sj_histogram_bin returns the bin of a value; sj_histogram_low and _high the range of a bin. */
static inline uint32_t sj_histogram_bin(uint64_t value)
{
    if (value < SJ_HISTOGRAM_SHORT) {
        return sj_histogram_short_bins[value];
    }
    const uint32_t shift = 59u - (uint32_t)__builtin_clzll(value);
    return (shift << SJ_HISTOGRAM_SUB_BITS) + (uint32_t)(value >> shift);
}

uint64_t sj_histogram_low(uint32_t bin);
uint64_t sj_histogram_high(uint32_t bin); /* inclusive */

/* sj_histogram_add counts `count` values; SJ_ENOMEM leaves it as it was. The slow form is taken
 * when the value lies in an octave not held yet. */
SJ_MUST_CHECK sj_status sj_histogram_add_slow(sj_histogram *histogram, uint64_t value,
                                              uint64_t count);
SJ_MUST_CHECK static inline sj_status sj_histogram_add(sj_histogram *histogram, uint64_t value,
                                                       uint64_t count)
{
    const uint32_t bin = sj_histogram_bin(value);
    const uint32_t octave = (bin >> SJ_HISTOGRAM_SUB_BITS) - histogram->first_octave;
    if (octave < histogram->octave_count) {
        histogram->octaves[octave].count[bin & ((1u << SJ_HISTOGRAM_SUB_BITS) - 1u)] += count;
        return SJ_OK;
    }
    return sj_histogram_add_slow(histogram, value, count);
}
/* sj_histogram_hold makes room for the bins from `low` to `high`: counting in them needs none.
 * SJ_ENOMEM leaves it as it was. */
SJ_MUST_CHECK sj_status sj_histogram_hold(sj_histogram *histogram, uint32_t low, uint32_t high);
SJ_MUST_CHECK sj_status sj_histogram_merge(sj_histogram *into, const sj_histogram *from);
/* sj_histogram_subtract takes away what was merged into it before; sj_histogram_take, of one bin.
 */
void sj_histogram_subtract(sj_histogram *from, const sj_histogram *part);
void sj_histogram_take(sj_histogram *from, uint32_t bin, uint64_t count);
void sj_histogram_deinit(sj_histogram *histogram); /* safe on a zeroed one */

/* A quantile by nearest rank: the smallest value that at least q of all values do not exceed. */
typedef struct sj_quantile {
    uint64_t value; /* middle of its bin; 0 when the histogram is empty */
    bool is_least;  /* it is the least of all values */
    bool is_most;   /* it is the greatest of all values */
} sj_quantile;

/* sj_histogram_find_quantile finds quantile q (0..1; NaN is 0); sj_histogram_quantile returns its
 * value only. */
sj_quantile sj_histogram_find_quantile(const sj_histogram *histogram, double q);
uint64_t sj_histogram_quantile(const sj_histogram *histogram, double q);

/* sj_quantile_within returns a quantile's value, converted to the caller's unit as `value`, between
 * the exact least and greatest values in that unit. */
int64_t sj_quantile_within(const sj_quantile *quantile, int64_t value, int64_t least, int64_t most);

/* Stored form. sj_histogram_decode checks everything: SJ_ECORRUPT, SJ_EVERSION, SJ_ENOMEM. */
size_t sj_histogram_encoded_bound(const sj_histogram *histogram);
size_t sj_histogram_encode(const sj_histogram *histogram, uint8_t *output, size_t capacity);
SJ_MUST_CHECK sj_status sj_histogram_decode(sj_slice bytes, sj_histogram *histogram);

/* Writes the stored form bin by bin, in rising order, counts above 0. sj_histogram_written returns
 * its size; 0: there was no room. */
typedef struct sj_histogram_writer {
    sj_writer writer;
    uint32_t previous;
} sj_histogram_writer;

sj_histogram_writer sj_histogram_begin(uint8_t *output, size_t capacity);
void sj_histogram_put(sj_histogram_writer *writer, uint32_t bin, uint64_t count);
size_t sj_histogram_written(const sj_histogram_writer *writer);

/* Reads it bin by bin, without a histogram in memory. sj_histogram_next gives bins in rising order;
 * SJ_ENOTFOUND: that was all, SJ_ECORRUPT. */
typedef struct sj_histogram_reader {
    sj_reader reader;
    uint32_t bin;
    bool first;
} sj_histogram_reader;

SJ_MUST_CHECK sj_status sj_histogram_open(sj_slice bytes, sj_histogram_reader *reader);
SJ_MUST_CHECK sj_status sj_histogram_next(sj_histogram_reader *reader, uint32_t *bin,
                                          uint64_t *count);

#endif
