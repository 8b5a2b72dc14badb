/* The columns of times: format and decoder. block_times_encode.c has the encoder.
 *
 * Times are the greater part of a block. The gap of an event is its distance to the event before
 * it, in clock steps. The first event's gap is 0. The encoder packs each gap in 2, 4 or 8 bits,
 * whichever needs the fewest bytes before compression. With a coarse clock, almost all gaps are 0
 * to 2, so zstd sees four gaps in each byte. With a fine clock, gaps fill a byte.
 *
 * The highest value of a packing marks a long gap: a gap of at least this value. The rest of the
 * gap beyond this value is a varint in the column of long times.
 *
 *   times: u8 bits (2, 4, 8) | ceil(count * bits / 8) bytes, earlier gaps in lower bits, rest 0
 *   long times: one varint for each gap whose packed value is the highest, in order */
#include "proto/block/block_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define EIGHT_TARGET __attribute__((target("avx2")))
#endif

/* The decoder has no branch per event. It first reads the rests of all long gaps into the end of
 * the array of times. Then it adds one rest wherever a packed value is the highest. No rest is
 * overwritten before its use: each unused rest belongs to a time that is not written yet. */

/* Reads the rests of the long gaps, in ticks, into the end of `ticks`. Points `*gaps` at the first
 * one. Returns SJ_ECORRUPT if their sum exceeds `most`, or if the column is malformed. */
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

/* The rests of the long gaps, and how many of them have been used. */
typedef struct long_gap_reader {
    const uint64_t *gaps;
    size_t count;
    size_t used;
} long_gap_reader;

/* Writes the times of the lowest `here` gaps of `packed`. `now` is the time before them. Returns
 * the last time. */
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

/* Writes the times of `count` gaps and returns the last time. Compiled once for each packing.
 *
 * An overflow changes the last time, which the caller compares with the header's. The rests add up
 * to at most the duration of the block, and the packed values to less than 2^58 ticks. So the sum
 * cannot wrap around to the right last time.
 *
 * In a corrupt block with too few rests, the loop reads beyond them: up to four here, up to eight
 * in expand_eights. TICKS_SLACK (block_decode.c) allocates that many after `ticks`. */
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

static inline uint64_t move_apart(uint64_t packed, unsigned bits, uint64_t kept)
{
    return (packed | packed << bits) & kept;
}

/* Returns eight gaps of `bits` bits each as eight bytes. `bits` is a constant. First separates the
 * upper four gaps from the lower four, then pairs of gaps, then single gaps. */
static inline __attribute__((always_inline)) uint64_t spread(uint64_t packed, unsigned bits)
{
    if (bits == 4) {
        packed = move_apart(packed, 16, UINT64_C(0x0000ffff0000ffff));
        packed = move_apart(packed, 8, UINT64_C(0x00ff00ff00ff00ff));
        packed = move_apart(packed, 4, UINT64_C(0x0f0f0f0f0f0f0f0f));
    } else if (bits == 2) {
        packed = move_apart(packed, 24, UINT64_C(0x000000ff000000ff));
        packed = move_apart(packed, 12, UINT64_C(0x000f000f000f000f));
        packed = move_apart(packed, 6, UINT64_C(0x0303030303030303));
    }
    return packed;
}

#ifdef EIGHT_TARGET
enum { EIGHT = 8 };

/* Adds the rest of a long gap to time `first` of eight times, counted from 0, and to the times
 * after it. Changes nothing if `first` is EIGHT. */
EIGHT_TARGET static inline void add_long(__m256i halves[2], unsigned first, uint64_t gap)
{
    static const int64_t from[2 * EIGHT] = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};
    const __m256i gaps = _mm256_set1_epi64x((int64_t)gap);
    const __m256i *lanes = (const void *)(from + EIGHT - first);
    halves[0] = _mm256_add_epi64(halves[0], _mm256_and_si256(gaps, _mm256_loadu_si256(lanes)));
    halves[1] = _mm256_add_epi64(halves[1], _mm256_and_si256(gaps, _mm256_loadu_si256(lanes + 1)));
}

/* Adds the rests of the long gaps among eight gaps. Bit i of `left` is set if gap i is long.
 * Handles the usual case, at most one long gap, without a taken branch. */
EIGHT_TARGET static inline void add_longs(__m256i halves[2], unsigned left, long_gap_reader *reader)
{
    add_long(halves, (unsigned)__builtin_ctz(left | 1U << EIGHT), reader->gaps[reader->used]);
    reader->used += left != 0;
    for (left &= left - 1; __builtin_expect(left != 0, 0); left &= left - 1) {
        add_long(halves, (unsigned)__builtin_ctz(left), reader->gaps[reader->used++]);
    }
}

/* Does the same as expand_gaps, eight gaps at a time. Computes their times as prefix sums,
 * in parallel. The rest of a long gap is added to the time of its event and to all later times. */
EIGHT_TARGET static inline __attribute__((always_inline)) uint64_t
expand_eights(const uint8_t *packed, unsigned bits, uint64_t now, uint64_t step,
              long_gap_reader *reader, uint64_t *ticks, size_t count)
{
    const __m256i steps = _mm256_set1_epi64x((int64_t)step);
    const __m128i highest = _mm_set1_epi8((int8_t)((1U << bits) - 1));
    __m256i base = _mm256_set1_epi64x((int64_t)now);
    long_gap_reader longs = *reader;
    size_t i = 0;
    for (; i + EIGHT <= count && longs.used <= longs.count; i += EIGHT) {
        uint64_t eight = 0;
        memcpy(&eight, packed + i / EIGHT * bits, bits);
        const __m128i gaps = _mm_cvtsi64_si128((int64_t)spread(eight, bits));
        __m128i sums = _mm_cvtepu8_epi16(gaps);
        sums = _mm_add_epi16(sums, _mm_slli_si128(sums, 2));
        sums = _mm_add_epi16(sums, _mm_slli_si128(sums, 4));
        sums = _mm_add_epi16(sums, _mm_slli_si128(sums, 8));
        const __m128i last_sums = _mm_unpackhi_epi64(sums, sums);
        __m256i halves[2] = {_mm256_mul_epu32(_mm256_cvtepu16_epi64(sums), steps),
                             _mm256_mul_epu32(_mm256_cvtepu16_epi64(last_sums), steps)};
        const __m128i is_long = _mm_cmpeq_epi8(gaps, highest);
        add_longs(halves, (uint8_t)_mm_movemask_epi8(is_long), &longs);
        halves[1] = _mm256_add_epi64(halves[1], base);
        _mm256_storeu_si256((void *)(ticks + i), _mm256_add_epi64(halves[0], base));
        _mm256_storeu_si256((void *)(ticks + i + EIGHT / 2), halves[1]);
        base = _mm256_permute4x64_epi64(halves[1], 0xff);
    }
    *reader = longs;
    now = (uint64_t)_mm256_extract_epi64(base, 0);
    return expand_gaps(packed + i / EIGHT * bits, bits, now, step, reader, ticks + i, count - i);
}

EIGHT_TARGET static uint64_t expand_packed(const uint8_t *packed, unsigned bits, uint64_t now,
                                           uint64_t step, long_gap_reader *reader, uint64_t *ticks,
                                           size_t count)
{
    return bits == 2   ? expand_eights(packed, 2, now, step, reader, ticks, count)
           : bits == 4 ? expand_eights(packed, 4, now, step, reader, ticks, count)
                       : expand_eights(packed, 8, now, step, reader, ticks, count);
}
#endif

static uint64_t expand(const uint8_t *packed, unsigned bits, uint64_t now, uint64_t step,
                       long_gap_reader *reader, uint64_t *ticks, size_t count)
{
#ifdef EIGHT_TARGET
    if (__builtin_cpu_supports("avx2")) {
        return expand_packed(packed, bits, now, step, reader, ticks, count);
    }
#endif
    return bits == 2   ? expand_gaps(packed, 2, now, step, reader, ticks, count)
           : bits == 4 ? expand_gaps(packed, 4, now, step, reader, ticks, count)
                       : expand_gaps(packed, 8, now, step, reader, ticks, count);
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
    const uint64_t last =
        expand(packed.data + 1, bits, header->first_ticks, step, &reader, ticks, count);
    const bool whole = reader.used == reader.count && ticks[0] == header->first_ticks &&
                       last == header->last_ticks;
    return whole ? SJ_OK : SJ_ECORRUPT;
}
