/* A mergeable histogram of durations. It is log-linear with 16 bins per octave. A quantile is the
 * middle of its bin and therefore at most 1/32 (3.1 %) off. An octave is allocated when it is first
 * used, so a call path with similar durations costs little. All values have the same unit, which
 * the histogram does not store. Not thread-safe.
 *
 * Stored form: varint version (1), then for each non-empty bin varint (bin - previous bin) and
 * varint count. That is 2-3 bytes per bin. */
#ifndef SJ_PROTO_CALLGRAPH_HISTOGRAM_H
#define SJ_PROTO_CALLGRAPH_HISTOGRAM_H

#include "proto/base/cursor.h"

#include <stdbool.h>

enum {
    SJ_HISTOGRAM_SUB_BITS = 4,
    SJ_HISTOGRAM_OCTAVES = 61, /* enough for 64-bit values */
    SJ_HISTOGRAM_BINS = SJ_HISTOGRAM_OCTAVES << SJ_HISTOGRAM_SUB_BITS,
    SJ_HISTOGRAM_SHORT = 2048
};

/* The bins of all values below SJ_HISTOGRAM_SHORT. Most durations are below it. */
extern const uint16_t sj_histogram_short_bins[SJ_HISTOGRAM_SHORT];

typedef struct sj_histogram_octave {
    uint64_t count[1 << SJ_HISTOGRAM_SUB_BITS];
} sj_histogram_octave;

typedef struct sj_histogram {
    uint32_t first_octave; /* the lowest octave that is held; meaningless if octave_count is 0 */
    uint32_t octave_count; /* number of consecutive octaves */
    sj_histogram_octave *octaves; /* owned */
} sj_histogram;

/* sj_histogram_bin returns the bin of a value. sj_histogram_low and sj_histogram_high return the
 * range of a bin. */
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

/* Counts `count` values. Errors: SJ_ENOMEM leaves the histogram unchanged. sj_histogram_add_slow is
 * the path for an octave that is not held yet. */
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
/* Makes the histogram hold the bins from `low` to `high`, so that counting in them cannot fail.
 * Errors: SJ_ENOMEM leaves it unchanged. */
SJ_MUST_CHECK sj_status sj_histogram_reserve(sj_histogram *histogram, uint32_t low, uint32_t high);
SJ_MUST_CHECK sj_status sj_histogram_merge(sj_histogram *into, const sj_histogram *from);
/* sj_histogram_subtract subtracts a histogram that was merged before. sj_histogram_subtract_bin
 * subtracts from one bin. */
void sj_histogram_subtract(sj_histogram *from, const sj_histogram *part);
void sj_histogram_subtract_bin(sj_histogram *from, uint32_t bin, uint64_t count);
void sj_histogram_deinit(sj_histogram *histogram); /* A zeroed histogram is allowed */

/* A quantile by nearest rank: the smallest value that at least a fraction q of all values do not
 * exceed. */
typedef struct sj_quantile {
    uint64_t value; /* middle of its bin; 0 if the histogram is empty */
    bool is_least;  /* its rank is the first: the exact minimum is a better value */
    bool is_most;   /* its rank is the last: the exact maximum is a better value */
} sj_quantile;

/* sj_histogram_find_quantile returns quantile q (0..1; NaN counts as 0). sj_histogram_quantile
 * returns only its value. */
sj_quantile sj_histogram_find_quantile(const sj_histogram *histogram, double q);
uint64_t sj_histogram_quantile(const sj_histogram *histogram, double q);

/* Returns a quantile's value within the exact minimum and maximum. `value` is quantile->value in
 * the caller's unit; `least` and `most` have that unit, too. */
int64_t sj_quantile_within(const sj_quantile *quantile, int64_t value, int64_t least, int64_t most);

/* Encoding and decoding of the stored form. sj_histogram_decode checks all bytes. Errors:
 * SJ_ECORRUPT, SJ_EVERSION, SJ_ENOMEM. */
size_t sj_histogram_encoded_bound(const sj_histogram *histogram);
size_t sj_histogram_encode(const sj_histogram *histogram, uint8_t *output, size_t capacity);
SJ_MUST_CHECK sj_status sj_histogram_decode(sj_slice bytes, sj_histogram *histogram);

/* Writes the stored form bin by bin. Bins must rise and counts must not be 0. sj_histogram_written
 * returns the size, or 0 if the capacity was too small. */
typedef struct sj_histogram_writer {
    sj_writer writer;
    uint32_t previous;
} sj_histogram_writer;

sj_histogram_writer sj_histogram_begin(uint8_t *output, size_t capacity);
void sj_histogram_put(sj_histogram_writer *writer, uint32_t bin, uint64_t count);
size_t sj_histogram_written(const sj_histogram_writer *writer);

/* Reads the stored form bin by bin, in rising order, without a histogram in memory. */
typedef struct sj_histogram_reader {
    sj_reader reader;
    uint32_t bin;
    bool first;
} sj_histogram_reader;

/* sj_histogram_open borrows `bytes`. It returns SJ_EVERSION for another version of the format.
 * sj_histogram_next returns SJ_ENOTFOUND after the last bin. Both return SJ_ECORRUPT for bad
 * bytes. */
SJ_MUST_CHECK sj_status sj_histogram_open(sj_slice bytes, sj_histogram_reader *reader);
SJ_MUST_CHECK sj_status sj_histogram_next(sj_histogram_reader *reader, uint32_t *bin,
                                          uint64_t *count);

#endif
