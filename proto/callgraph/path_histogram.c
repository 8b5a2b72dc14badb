#include "proto/callgraph/path_histogram.h"

#include <stdlib.h>
#include <string.h>

enum {
    SUB_COUNT = 1 << SJ_HISTOGRAM_SUB_BITS,
    COUNT_MASK = (1 << SJ_PATH_COUNT_BITS) - 1,
    /* below this size, a list grows by 4 entries, which fills the blocks that malloc returns */
    SMALL_LIST = 14,
    MAX_VARINT_BYTES = 10,
    MAX_BIN_DELTA_BYTES = 2
};

_Static_assert(SJ_HISTOGRAM_BINS <= 1 << (32 - SJ_PATH_COUNT_BITS), "bins fit their bits");
_Static_assert(sizeof(sj_path_histogram) == 16, "two words");

static uint32_t bin_of(uint32_t entry)
{
    return entry >> SJ_PATH_COUNT_BITS;
}

static uint32_t *list_of(sj_path_histogram *histogram)
{
    return histogram->list_capacity == 0 ? histogram->bins.within : histogram->bins.list;
}

static const uint32_t *read_list(const sj_path_histogram *histogram)
{
    return histogram->list_capacity == 0 ? histogram->bins.within : histogram->bins.list;
}

/* Returns the octaves as a histogram that borrows them. */
static sj_histogram view_octaves(const sj_path_histogram *histogram)
{
    return (sj_histogram){.first_octave = histogram->first_octave,
                          .octave_count = histogram->octave_count,
                          .octaves = histogram->bins.octaves};
}

static void own_octaves(sj_path_histogram *histogram, const sj_histogram *octaves)
{
    *histogram = (sj_path_histogram){.bins.octaves = octaves->octaves,
                                     .octave_count = (uint8_t)octaves->octave_count,
                                     .first_octave = (uint8_t)octaves->first_octave};
}

static sj_status add_list_to(const sj_path_histogram *part, sj_histogram *into)
{
    const uint32_t *list = read_list(part);
    uint32_t low = SJ_HISTOGRAM_BINS - 1;
    uint32_t high = 0;
    for (uint32_t i = 0; i < part->list_count; i++) {
        low = bin_of(list[i]) < low ? bin_of(list[i]) : low;
        high = bin_of(list[i]) > high ? bin_of(list[i]) : high;
    }
    if (part->list_count != 0) {
        SJ_TRY(sj_histogram_reserve(into, low, high));
    }
    for (uint32_t i = 0; i < part->list_count; i++) {
        SJ_TRY(sj_histogram_add(into, sj_histogram_low(bin_of(list[i])), list[i] & COUNT_MASK));
    }
    return SJ_OK;
}

sj_status sj_path_histogram_add_to(const sj_path_histogram *part, sj_histogram *into)
{
    if (part->octave_count == 0) {
        return add_list_to(part, into);
    }
    const sj_histogram octaves = view_octaves(part);
    return sj_histogram_merge(into, &octaves);
}

void sj_path_histogram_subtract_from(const sj_path_histogram *part, sj_histogram *from)
{
    const sj_histogram octaves = view_octaves(part);
    const uint32_t *list = read_list(part);
    if (part->octave_count != 0) {
        sj_histogram_subtract(from, &octaves);
    }
    for (uint32_t i = 0; i < part->list_count; i++) {
        sj_histogram_subtract_bin(from, bin_of(list[i]), list[i] & COUNT_MASK);
    }
}

void sj_path_histogram_deinit(sj_path_histogram *histogram)
{
    if (histogram->octave_count != 0) {
        free(histogram->bins.octaves);
    } else if (histogram->list_capacity != 0) {
        free(histogram->bins.list);
    }
    *histogram = (sj_path_histogram){0};
}

sj_status sj_path_histogram_spread(sj_path_histogram *histogram)
{
    sj_histogram octaves = {0};
    if (histogram->octave_count != 0 || histogram->list_count == 0) {
        return SJ_OK;
    }
    SJ_TRY(add_list_to(histogram, &octaves));
    sj_path_histogram_deinit(histogram);
    own_octaves(histogram, &octaves);
    return SJ_OK;
}

/* Converts a list to octaves and counts in them. */
static sj_status add_in_octaves(sj_path_histogram *histogram, uint64_t value, uint64_t count)
{
    SJ_TRY(sj_path_histogram_spread(histogram));
    sj_histogram octaves = view_octaves(histogram);
    const sj_status status = sj_histogram_add(&octaves, value, count);
    if (status == SJ_OK) {
        own_octaves(histogram, &octaves);
    }
    return status;
}

static sj_status grow_list(sj_path_histogram *histogram)
{
    const uint32_t capacity =
        histogram->list_capacity == 0 ? (uint32_t)SJ_PATH_BINS_WITHIN : histogram->list_capacity;
    const uint32_t grown = capacity < SMALL_LIST ? capacity + 4 : capacity + 8;
    uint32_t *held = histogram->list_capacity == 0 ? NULL : histogram->bins.list;
    uint32_t *list = realloc(held, grown * sizeof(*list));
    if (list == NULL) {
        return SJ_ENOMEM;
    }
    if (held == NULL) {
        memcpy(list, histogram->bins.within, sizeof(histogram->bins.within));
    }
    histogram->bins.list = list;
    histogram->list_capacity = (uint8_t)grown;
    return SJ_OK;
}

static sj_status add_in_list(sj_path_histogram *histogram, uint32_t bin, uint64_t count)
{
    const uint32_t capacity =
        histogram->list_capacity == 0 ? (uint32_t)SJ_PATH_BINS_WITHIN : histogram->list_capacity;
    if (histogram->list_count == capacity) {
        SJ_TRY(grow_list(histogram));
    }
    list_of(histogram)[histogram->list_count++] = bin << SJ_PATH_COUNT_BITS | (uint32_t)count;
    return SJ_OK;
}

sj_status sj_path_histogram_add(sj_path_histogram *histogram, uint64_t value, uint64_t count)
{
    const uint32_t bin = sj_histogram_bin(value);
    uint32_t *list = list_of(histogram);
    uint32_t place = 0;
    if (histogram->octave_count != 0 || count > SJ_PATH_COUNT_MOST) {
        return add_in_octaves(histogram, value, count);
    }
    while (place < histogram->list_count && bin_of(list[place]) != bin) {
        place++;
    }
    if (place == histogram->list_count) {
        return histogram->list_count < SJ_PATH_BINS_MOST ? add_in_list(histogram, bin, count)
                                                         : add_in_octaves(histogram, value, count);
    }
    if ((list[place] & COUNT_MASK) + count > SJ_PATH_COUNT_MOST) {
        return add_in_octaves(histogram, value, count);
    }
    const uint32_t entry = list[place] + (uint32_t)count;
    if (place > 0) { /* moves frequent bins to the front */
        list[place] = list[place - 1];
        place--;
    }
    list[place] = entry;
    return SJ_OK;
}

sj_status sj_path_histogram_merge(sj_path_histogram *into, const sj_path_histogram *from)
{
    const uint32_t *list = read_list(from);
    const uint32_t first = (uint32_t)from->first_octave << SJ_HISTOGRAM_SUB_BITS;
    const uint32_t bins = (uint32_t)from->octave_count << SJ_HISTOGRAM_SUB_BITS;
    for (uint32_t i = 0; i < from->list_count; i++) {
        SJ_TRY(
            sj_path_histogram_add(into, sj_histogram_low(bin_of(list[i])), list[i] & COUNT_MASK));
    }
    for (uint32_t i = 0; i < bins; i++) {
        const uint64_t count =
            from->bins.octaves[i >> SJ_HISTOGRAM_SUB_BITS].count[i & (SUB_COUNT - 1)];
        if (count != 0) {
            SJ_TRY(sj_path_histogram_add(into, sj_histogram_low(first + i), count));
        }
    }
    return SJ_OK;
}

size_t sj_path_histogram_encoded_bound(const sj_path_histogram *histogram)
{
    const sj_histogram octaves = view_octaves(histogram);
    return histogram->octave_count != 0
               ? sj_histogram_encoded_bound(&octaves)
               : 1 + (size_t)histogram->list_count * (MAX_BIN_DELTA_BYTES + MAX_VARINT_BYTES);
}

/* Sorts by bin: the bin is in the high bits of an entry. */
static void sort_list(uint32_t *list, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t entry = list[i];
        uint32_t place = i;
        for (; place > 0 && list[place - 1] > entry; place--) {
            list[place] = list[place - 1];
        }
        list[place] = entry;
    }
}

size_t sj_path_histogram_encode(const sj_path_histogram *histogram, uint8_t *output,
                                size_t capacity)
{
    const sj_histogram octaves = view_octaves(histogram);
    uint32_t list[SJ_PATH_BINS_MOST] = {0};
    if (histogram->octave_count != 0) {
        return sj_histogram_encode(&octaves, output, capacity);
    }
    memcpy(list, read_list(histogram), histogram->list_count * sizeof(*list));
    sort_list(list, histogram->list_count);
    sj_histogram_writer writer = sj_histogram_begin(output, capacity);
    for (uint32_t i = 0; i < histogram->list_count; i++) {
        sj_histogram_put(&writer, bin_of(list[i]), list[i] & COUNT_MASK);
    }
    return sj_histogram_written(&writer);
}

static sj_status decode_bins(sj_histogram_reader *reader, sj_path_histogram *histogram)
{
    uint32_t bin;
    uint64_t count;
    sj_status status;
    while ((status = sj_histogram_next(reader, &bin, &count)) == SJ_OK) {
        SJ_TRY(sj_path_histogram_add(histogram, sj_histogram_low(bin), count));
    }
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

sj_status sj_path_histogram_decode(sj_slice bytes, sj_path_histogram *histogram)
{
    *histogram = (sj_path_histogram){0};
    sj_histogram_reader reader;
    SJ_TRY(sj_histogram_open(bytes, &reader));
    const sj_status status = decode_bins(&reader, histogram);
    if (status != SJ_OK) {
        sj_path_histogram_deinit(histogram);
    }
    return status;
}
