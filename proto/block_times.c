/* Design notes.
 *
 * Times are the greater part of a block. Each event has one gap to the event before it (the first
 * one to first_ticks, so 0), in clock steps. Gaps are packed at 2, 4 or 8 bits, whichever makes
 * the fewest bytes before compression: a clock that advances in coarse steps gives gaps of 0 to 2
 * almost always, and then zstd's entropy stage sees four of them at once; a fine clock gives gaps
 * that fill a byte. The highest value of a packing stands for "that much or more" and the rest
 * follows as a varint in the column of long times.
 *
 *   times: u8 bits (2, 4, 8) | ceil(count * bits / 8) bytes, earlier gaps in lower bits, rest 0
 *   long times: one varint for each gap whose packed value is the highest, in order */
#include "proto/block_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define EIGHT_TARGET __attribute__((target("avx2")))
#endif

/* Quotients by a step that is the same for a whole block, without a division for each. */
typedef struct divider {
    uint64_t reciprocal; /* ceil(2^64 / step), exact for dividends below 2^32 */
    uint32_t step;
} divider;

static divider divider_of(uint32_t step)
{
    return (divider){.reciprocal = step > 1 ? UINT64_MAX / step + 1 : 0, .step = step};
}

static inline uint64_t divide(const divider *by, uint64_t dividend)
{
    if (by->step <= 1) {
        return dividend;
    }
    if (dividend > UINT32_MAX) {
        return dividend / by->step;
    }
    return (uint64_t)(((unsigned __int128)dividend * by->reciprocal) >> 64);
}

typedef struct gap_figures {
    uint64_t remainder; /* not 0 when a gap is no multiple of the step */
    bool backwards;
    size_t over_2; /* gaps that 2, 4 and 8 bits have no room for */
    size_t over_4;
    size_t over_8;
} gap_figures;

/* measure_gaps fills the gaps in steps of `by`. */
static gap_figures measure_gaps(const sj_event *events, size_t count, divider by, uint32_t *gaps)
{
    uint64_t previous = count != 0 ? events[0].ticks : 0;
    uint64_t remainder = 0;
    bool backwards = false;
    for (size_t i = 0; i < count; i++) {
        const uint64_t now = events[i].ticks;
        const uint64_t ticks = now - previous;
        const uint64_t steps = divide(&by, ticks);
        backwards |= now < previous;
        remainder |= ticks - steps * by.step;
        gaps[i] = steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX;
        previous = now;
    }
    uint32_t over_2 = 0;
    uint32_t over_4 = 0;
    uint32_t over_8 = 0;
    for (size_t i = 0; i < count; i++) {
        over_2 += gaps[i] >= 3;
        over_4 += gaps[i] >= 15;
        over_8 += gaps[i] >= 255;
    }
    return (gap_figures){.remainder = remainder,
                         .backwards = backwards,
                         .over_2 = over_2,
                         .over_4 = over_4,
                         .over_8 = over_8};
}

sj_status sj_times_measure(const sj_event *events, size_t count, uint32_t step, uint32_t *gaps,
                           sj_times_plan *plan)
{
    gap_figures figures = measure_gaps(events, count, divider_of(step), gaps);
    if (figures.backwards) {
        return SJ_EINVAL;
    }
    plan->step = step;
    if (figures.remainder != 0) {
        plan->step = 1;
        figures = measure_gaps(events, count, divider_of(1), gaps);
    }
    plan->packing = 2;
    size_t best = count / 4 + figures.over_2;
    if (count / 2 + figures.over_4 < best) {
        plan->packing = 4;
        best = count / 2 + figures.over_4;
    }
    if (count + figures.over_8 < best) {
        plan->packing = 8;
    }
    return SJ_OK;
}

/* The gap of event `i` in steps; `gaps` cannot hold it. */
static uint64_t long_gap(const sj_event *events, size_t i, uint32_t step)
{
    return (events[i].ticks - events[i - 1].ticks) / step;
}

/* pack_gaps is compiled once for each packing. */
static inline __attribute__((always_inline)) void pack_gaps(const sj_event *events,
                                                            const uint32_t *gaps, size_t count,
                                                            uint32_t step, unsigned bits,
                                                            uint8_t *packed, sj_writer *escapes)
{
    const size_t per_byte = 8 / bits;
    const uint32_t highest = (1U << bits) - 1;
    for (size_t i = 0; i < count; i += per_byte) {
        const size_t here = count - i < per_byte ? count - i : per_byte;
        unsigned byte = 0;
        bool any_long = false;
        for (size_t k = 0; k < here; k++) {
            const uint32_t gap = gaps[i + k];
            byte |= (gap < highest ? gap : highest) << (k * bits);
            any_long |= gap >= highest;
        }
        *packed++ = (uint8_t)byte;
        for (size_t k = 0; any_long && k < here; k++) {
            const uint32_t gap = gaps[i + k];
            if (gap >= highest) {
                const uint64_t steps = gap == UINT32_MAX ? long_gap(events, i + k, step) : gap;
                sj_write_varint(escapes, steps - highest);
            }
        }
    }
}

void sj_times_encode(const sj_event *events, const uint32_t *gaps, size_t count,
                     const sj_times_plan *plan, sj_writer *packed, sj_writer *escapes)
{
    const size_t bytes = (count * plan->packing + 7) / 8;
    sj_write_u8(packed, (uint8_t)plan->packing);
    if ((size_t)(packed->end - packed->at) < bytes) {
        packed->bad = true;
        return;
    }
    if (plan->packing == 2) {
        pack_gaps(events, gaps, count, plan->step, 2, packed->at, escapes);
    } else if (plan->packing == 4) {
        pack_gaps(events, gaps, count, plan->step, 4, packed->at, escapes);
    } else {
        pack_gaps(events, gaps, count, plan->step, 8, packed->at, escapes);
    }
    packed->at += bytes;
}

/* Decoding works without a branch for each event: the long gaps are read first and then added where
 * a packed value is the highest. They wait at the end of the array of times, where none of them is
 * overwritten before it is used, because at least as many times as long gaps are still to come. */

/* Reads the long gaps, in ticks, into the end of `ticks`. `most` is what their sum may be. */
static sj_status read_long_gaps(sj_slice escapes, uint64_t step, uint64_t most, uint64_t *ticks,
                                size_t count, const uint64_t **gaps)
{
    size_t long_count = 0;
    for (size_t i = 0; i < escapes.size; i++) {
        long_count += escapes.data[i] < 0x80;
    }
    if (long_count > count) {
        return SJ_ECORRUPT;
    }
    sj_reader reader = sj_reader_of(escapes.data, escapes.size);
    uint64_t *gap = ticks + count - long_count;
    uint64_t sum = 0;
    bool bad = false;
    *gaps = gap;
    for (size_t i = 0; i < long_count; i++) {
        bad |= __builtin_mul_overflow(sj_read_varint(&reader), step, &gap[i]);
        bad |= __builtin_add_overflow(sum, gap[i], &sum);
    }
    const bool whole = !bad && !reader.bad && sj_reader_left(&reader) == 0 && sum <= most;
    return whole ? SJ_OK : SJ_ECORRUPT;
}

/* Where the long gaps are taken from, and how far. */
typedef struct long_gap_reader {
    const uint64_t *gaps;
    size_t count;
    size_t used;
} long_gap_reader;

/* The times of `here` gaps, packed in a byte or a word, whatever their length. */
static inline __attribute__((always_inline)) uint64_t
expand_any(uint64_t packed, unsigned bits, size_t here, uint64_t now, uint64_t step,
           long_gap_reader *reader, uint64_t *ticks)
{
    const uint64_t highest = (1U << bits) - 1;
    for (size_t k = 0; k < here; k++) {
        const uint64_t gap = packed & highest;
        const bool is_long = gap == highest;
        now += gap * step + (reader->gaps[reader->used] & (0 - (uint64_t)is_long));
        reader->used += is_long;
        packed >>= bits;
        ticks[k] = now;
    }
    return now;
}

/* expand_gaps is compiled once for each packing. Nothing can wrap unnoticed: long gaps add up to no
 * more than the block takes, short ones to less than 2^58, and the last time is known. Gives it. It
 * stops within a byte or a word after the last long gap there is, which the slack behind the times
 * makes harmless. */
static inline __attribute__((always_inline)) uint64_t
expand_gaps(const uint8_t *packed, unsigned bits, uint64_t now, uint64_t step,
            long_gap_reader *reader, uint64_t *ticks, size_t count)
{
    const size_t per_byte = 8 / bits;
    for (size_t i = 0; i < count && reader->used <= reader->count; i += per_byte) {
        const size_t here = count - i < per_byte ? count - i : per_byte;
        now = expand_any(packed[i / per_byte], bits, here, now, step, reader, ticks + i);
    }
    return now;
}

#ifdef EIGHT_TARGET
enum { EIGHT = 8 };

/* Adds a long gap to the times from number `first` of eight on; to none when that is EIGHT. */
EIGHT_TARGET static inline void add_long(__m256i halves[2], unsigned first, uint64_t gap)
{
    static const int64_t from[2 * EIGHT] = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};
    const __m256i gaps = _mm256_set1_epi64x((int64_t)gap);
    const __m256i *lanes = (const void *)(from + EIGHT - first);
    halves[0] = _mm256_add_epi64(halves[0], _mm256_and_si256(gaps, _mm256_loadu_si256(lanes)));
    halves[1] = _mm256_add_epi64(halves[1], _mm256_and_si256(gaps, _mm256_loadu_si256(lanes + 1)));
}

/* The long gaps among eight, a bit each: mostly one or none, which takes no branch to tell. */
EIGHT_TARGET static inline void add_longs(__m256i halves[2], unsigned left, long_gap_reader *reader)
{
    add_long(halves, (unsigned)__builtin_ctz(left | 1U << EIGHT), reader->gaps[reader->used]);
    reader->used += left != 0;
    for (left &= left - 1; __builtin_expect(left != 0, 0); left &= left - 1) {
        add_long(halves, (unsigned)__builtin_ctz(left), reader->gaps[reader->used++]);
    }
}

/* expand_gaps for gaps of a byte, eight at a time: times are sums of gaps, so that no event waits
 * for the one before it, and a long gap is added to those behind it. */
EIGHT_TARGET static uint64_t expand_eights(const uint8_t *packed, uint64_t now, uint64_t step,
                                           long_gap_reader *reader, uint64_t *ticks, size_t count)
{
    const __m256i steps = _mm256_set1_epi64x((int64_t)step);
    __m256i base = _mm256_set1_epi64x((int64_t)now);
    long_gap_reader longs = *reader;
    size_t i = 0;
    for (; i + EIGHT <= count && longs.used <= longs.count; i += EIGHT) {
        const __m128i gaps = _mm_loadl_epi64((const void *)(packed + i));
        __m128i sums = _mm_cvtepu8_epi16(gaps);
        sums = _mm_add_epi16(sums, _mm_slli_si128(sums, 2));
        sums = _mm_add_epi16(sums, _mm_slli_si128(sums, 4));
        sums = _mm_add_epi16(sums, _mm_slli_si128(sums, 8));
        const __m128i last_sums = _mm_unpackhi_epi64(sums, sums);
        __m256i halves[2] = {_mm256_mul_epu32(_mm256_cvtepu16_epi64(sums), steps),
                             _mm256_mul_epu32(_mm256_cvtepu16_epi64(last_sums), steps)};
        const __m128i is_long = _mm_cmpeq_epi8(gaps, _mm_set1_epi8(-1));
        add_longs(halves, (uint8_t)_mm_movemask_epi8(is_long), &longs);
        halves[1] = _mm256_add_epi64(halves[1], base);
        _mm256_storeu_si256((void *)(ticks + i), _mm256_add_epi64(halves[0], base));
        _mm256_storeu_si256((void *)(ticks + i + EIGHT / 2), halves[1]);
        base = _mm256_permute4x64_epi64(halves[1], 0xff);
    }
    *reader = longs;
    now = (uint64_t)_mm256_extract_epi64(base, 0);
    return expand_gaps(packed + i, 8, now, step, reader, ticks + i, count - i);
}
#endif

static uint64_t expand_bytes(const uint8_t *packed, uint64_t now, uint64_t step,
                             long_gap_reader *reader, uint64_t *ticks, size_t count)
{
#ifdef EIGHT_TARGET
    if (__builtin_cpu_supports("avx2")) {
        return expand_eights(packed, now, step, reader, ticks, count);
    }
#endif
    return expand_gaps(packed, 8, now, step, reader, ticks, count);
}

sj_status sj_times_decode(sj_slice packed, sj_slice escapes, const sj_block_header *header,
                          uint64_t *ticks)
{
    const size_t count = header->event_count;
    const uint64_t step = header->clock_step;
    if (packed.size == 0) {
        return count == 0 && escapes.size == 0 ? SJ_OK : SJ_ECORRUPT;
    }
    const unsigned bits = packed.data[0];
    if ((bits != 2 && bits != 4 && bits != 8) || packed.size != 1 + (count * bits + 7) / 8) {
        return SJ_ECORRUPT;
    }
    const uint64_t *gaps;
    SJ_TRY(read_long_gaps(escapes, step, header->last_ticks - header->first_ticks, ticks, count,
                          &gaps));
    long_gap_reader reader = {.gaps = gaps, .count = (size_t)(ticks + count - gaps)};
    const uint8_t *bytes = packed.data + 1;
    uint64_t last = header->first_ticks;
    if (bits == 2) {
        last = expand_gaps(bytes, 2, last, step, &reader, ticks, count);
    } else if (bits == 4) {
        last = expand_gaps(bytes, 4, last, step, &reader, ticks, count);
    } else {
        last = expand_bytes(bytes, last, step, &reader, ticks, count);
    }
    const bool whole = reader.used == reader.count && ticks[0] == header->first_ticks &&
                       last == header->last_ticks;
    return whole ? SJ_OK : SJ_ECORRUPT;
}
