#include "proto/callgraph/histogram.h"

#include <stdlib.h>

enum {
    SUB_COUNT = 1 << SJ_HISTOGRAM_SUB_BITS,
    STORED_VERSION = 1,
    MAX_VARINT_BYTES = 10,
    MAX_BIN_DELTA_BYTES = 2 /* a bin is below 2^14 */
};

#define SHIFT(v)                                                                                   \
    (((v) >= 32) + ((v) >= 64) + ((v) >= 128) + ((v) >= 256) + ((v) >= 512) + ((v) >= 1024))
#define BIN(v) ((SHIFT(v) << SJ_HISTOGRAM_SUB_BITS) + ((v) >> SHIFT(v)))
#define BINS_4(v) BIN(v), BIN((v) + 1), BIN((v) + 2), BIN((v) + 3)
#define BINS_16(v) BINS_4(v), BINS_4((v) + 4), BINS_4((v) + 8), BINS_4((v) + 12)
#define BINS_64(v) BINS_16(v), BINS_16((v) + 16), BINS_16((v) + 32), BINS_16((v) + 48)
#define BINS_256(v) BINS_64(v), BINS_64((v) + 64), BINS_64((v) + 128), BINS_64((v) + 192)

const uint16_t sj_histogram_short_bins[SJ_HISTOGRAM_SHORT] = {
    BINS_256(0),    BINS_256(256),  BINS_256(512),  BINS_256(768),
    BINS_256(1024), BINS_256(1280), BINS_256(1536), BINS_256(1792)};

uint64_t sj_histogram_low(uint32_t bin)
{
    if (bin < SUB_COUNT) {
        return bin;
    }
    const uint32_t shift = (bin >> SJ_HISTOGRAM_SUB_BITS) - 1;
    return (uint64_t)(SUB_COUNT + (bin & (SUB_COUNT - 1))) << shift;
}

uint64_t sj_histogram_high(uint32_t bin)
{
    if (bin < SUB_COUNT) {
        return bin;
    }
    const uint32_t shift = (bin >> SJ_HISTOGRAM_SUB_BITS) - 1;
    return sj_histogram_low(bin) + ((UINT64_C(1) << shift) - 1);
}

/* Makes the histogram hold the octaves first..last besides the ones it holds. */
static sj_status hold_octaves(sj_histogram *histogram, uint32_t first, uint32_t last)
{
    if (histogram->octave_count > 0) {
        const uint32_t held_last = histogram->first_octave + histogram->octave_count - 1;
        first = first < histogram->first_octave ? first : histogram->first_octave;
        last = last > held_last ? last : held_last;
    }
    const uint32_t count = last - first + 1;
    if (count == histogram->octave_count) {
        return SJ_OK;
    }
    sj_histogram_octave *octaves = realloc(histogram->octaves, count * sizeof(*octaves));
    if (octaves == NULL) {
        return SJ_ENOMEM;
    }
    const uint32_t moved = histogram->octave_count > 0 ? histogram->first_octave - first : 0;
    if (histogram->octave_count > 0) {
        memmove(octaves + moved, octaves, histogram->octave_count * sizeof(*octaves));
    }
    memset(octaves, 0, moved * sizeof(*octaves));
    const uint32_t kept_end = moved + histogram->octave_count;
    memset(octaves + kept_end, 0, (count - kept_end) * sizeof(*octaves));
    histogram->octaves = octaves;
    histogram->first_octave = first;
    histogram->octave_count = count;
    return SJ_OK;
}

sj_status sj_histogram_reserve(sj_histogram *histogram, uint32_t low, uint32_t high)
{
    return hold_octaves(histogram, low >> SJ_HISTOGRAM_SUB_BITS, high >> SJ_HISTOGRAM_SUB_BITS);
}

sj_status sj_histogram_add_slow(sj_histogram *histogram, uint64_t value, uint64_t count)
{
    const uint32_t bin = sj_histogram_bin(value);
    const uint32_t octave = bin >> SJ_HISTOGRAM_SUB_BITS;
    SJ_TRY(hold_octaves(histogram, octave, octave));
    histogram->octaves[octave - histogram->first_octave].count[bin & (SUB_COUNT - 1)] += count;
    return SJ_OK;
}

sj_status sj_histogram_merge(sj_histogram *into, const sj_histogram *from)
{
    if (from->octave_count == 0) {
        return SJ_OK;
    }
    SJ_TRY(hold_octaves(into, from->first_octave, from->first_octave + from->octave_count - 1));
    for (uint32_t i = 0; i < from->octave_count; i++) {
        sj_histogram_octave *octave = &into->octaves[from->first_octave + i - into->first_octave];
        for (uint32_t sub = 0; sub < SUB_COUNT; sub++) {
            octave->count[sub] += from->octaves[i].count[sub];
        }
    }
    return SJ_OK;
}

void sj_histogram_subtract(sj_histogram *from, const sj_histogram *part)
{
    for (uint32_t i = 0; i < part->octave_count; i++) {
        const uint32_t place = part->first_octave + i - from->first_octave;
        if (place >= from->octave_count) {
            continue;
        }
        for (uint32_t sub = 0; sub < SUB_COUNT; sub++) {
            from->octaves[place].count[sub] -= part->octaves[i].count[sub];
        }
    }
}

void sj_histogram_subtract_bin(sj_histogram *from, uint32_t bin, uint64_t count)
{
    const uint32_t place = (bin >> SJ_HISTOGRAM_SUB_BITS) - from->first_octave;
    if (place < from->octave_count) {
        from->octaves[place].count[bin & (SUB_COUNT - 1)] -= count;
    }
}

void sj_histogram_deinit(sj_histogram *histogram)
{
    free(histogram->octaves);
    *histogram = (sj_histogram){0};
}

static uint64_t count_of(const sj_histogram *histogram, uint32_t bin)
{
    return histogram->octaves[bin >> SJ_HISTOGRAM_SUB_BITS].count[bin & (SUB_COUNT - 1)];
}

/* Returns the rank of quantile q among `total` values; the smallest value has rank 1. A rounding
 * error of the multiplication must not raise the rank: quantile 0.07 of 100 values has rank 7. */
static uint64_t nearest_rank(double q, uint64_t total)
{
    const double clamped = q > 0 ? (q < 1 ? q : 1) : 0; /* a NaN counts as 0 */
    const double place = clamped * (double)total;
    uint64_t rank = (uint64_t)place;
    if (place - (double)rank > 1e-9 * place) {
        rank++;
    }
    return rank < 1 ? 1 : rank < total ? rank : total;
}

sj_quantile sj_histogram_find_quantile(const sj_histogram *histogram, double q)
{
    const uint32_t bins = histogram->octave_count << SJ_HISTOGRAM_SUB_BITS;
    uint64_t total = 0;
    for (uint32_t i = 0; i < bins; i++) {
        total += count_of(histogram, i);
    }
    if (total == 0) {
        return (sj_quantile){0};
    }
    const uint64_t rank = nearest_rank(q, total);
    uint64_t seen = count_of(histogram, 0);
    uint32_t found = 0;
    while (seen < rank) {
        seen += count_of(histogram, ++found);
    }
    const uint32_t bin = (histogram->first_octave << SJ_HISTOGRAM_SUB_BITS) + found;
    const uint64_t low = sj_histogram_low(bin);
    return (sj_quantile){.value = low + (sj_histogram_high(bin) - low) / 2,
                         .is_least = rank == 1,
                         .is_most = rank == total};
}

uint64_t sj_histogram_quantile(const sj_histogram *histogram, double q)
{
    return sj_histogram_find_quantile(histogram, q).value;
}

int64_t sj_quantile_within(const sj_quantile *quantile, int64_t value, int64_t least, int64_t most)
{
    if (quantile->is_least || value < least) {
        return least;
    }
    return quantile->is_most || value > most ? most : value;
}

size_t sj_histogram_encoded_bound(const sj_histogram *histogram)
{
    const size_t bins = (size_t)histogram->octave_count << SJ_HISTOGRAM_SUB_BITS;
    return 1 + bins * (MAX_BIN_DELTA_BYTES + MAX_VARINT_BYTES);
}

sj_histogram_writer sj_histogram_begin(uint8_t *output, size_t capacity)
{
    sj_histogram_writer writer = {.writer = sj_writer_of(output, capacity)};
    sj_write_varint(&writer.writer, STORED_VERSION);
    return writer;
}

void sj_histogram_put(sj_histogram_writer *writer, uint32_t bin, uint64_t count)
{
    sj_write_varint(&writer->writer, bin - writer->previous);
    sj_write_varint(&writer->writer, count);
    writer->previous = bin;
}

size_t sj_histogram_written(const sj_histogram_writer *writer)
{
    return writer->writer.bad ? 0 : sj_writer_used(&writer->writer);
}

size_t sj_histogram_encode(const sj_histogram *histogram, uint8_t *output, size_t capacity)
{
    sj_histogram_writer writer = sj_histogram_begin(output, capacity);
    const uint32_t base = histogram->first_octave << SJ_HISTOGRAM_SUB_BITS;
    const uint32_t bins = histogram->octave_count << SJ_HISTOGRAM_SUB_BITS;
    for (uint32_t i = 0; i < bins; i++) {
        const uint64_t count = count_of(histogram, i);
        if (count != 0) {
            sj_histogram_put(&writer, base + i, count);
        }
    }
    return sj_histogram_written(&writer);
}

sj_status sj_histogram_open(sj_slice bytes, sj_histogram_reader *reader)
{
    *reader = (sj_histogram_reader){.reader = sj_reader_of(bytes.data, bytes.size), .first = true};
    const uint64_t version = sj_read_varint(&reader->reader);
    return reader->reader.bad ? SJ_ECORRUPT : version != STORED_VERSION ? SJ_EVERSION : SJ_OK;
}

sj_status sj_histogram_next(sj_histogram_reader *reader, uint32_t *bin, uint64_t *count)
{
    if (sj_reader_left(&reader->reader) == 0) {
        return SJ_ENOTFOUND;
    }
    const uint64_t delta = sj_read_varint(&reader->reader);
    *count = sj_read_varint(&reader->reader);
    if (reader->reader.bad || delta >= SJ_HISTOGRAM_BINS || (delta == 0 && !reader->first) ||
        *count == 0) {
        return SJ_ECORRUPT;
    }
    reader->bin += (uint32_t)delta;
    reader->first = false;
    *bin = reader->bin;
    return reader->bin < SJ_HISTOGRAM_BINS ? SJ_OK : SJ_ECORRUPT;
}

static sj_status decode_bins(sj_histogram_reader *reader, sj_histogram *histogram)
{
    uint32_t bin;
    uint64_t count;
    sj_status status;
    while ((status = sj_histogram_next(reader, &bin, &count)) == SJ_OK) {
        SJ_TRY(sj_histogram_add(histogram, sj_histogram_low(bin), count));
    }
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

sj_status sj_histogram_decode(sj_slice bytes, sj_histogram *histogram)
{
    *histogram = (sj_histogram){0};
    sj_histogram_reader reader;
    SJ_TRY(sj_histogram_open(bytes, &reader));
    const sj_status status = decode_bins(&reader, histogram);
    if (status != SJ_OK) {
        sj_histogram_deinit(histogram);
    }
    return status;
}
