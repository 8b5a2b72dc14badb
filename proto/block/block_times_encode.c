/* The encoder of times; block_times.c documents the format. It first measures all gaps, one byte
 * each, because the number of long gaps decides the packing. Then it packs the bytes. The few gaps
 * of SJ_LONG_GAP steps and more are computed again when they are written. Eight or sixteen events
 * are handled at once while all of them are ordinary. */
#include "proto/block/block_internal.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Divides by a constant step without a division instruction. */
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

enum { SUSPECT_GAP_BITS = 40 };

/* Number of gaps that do not fit into 2, 4 and 8 bits. */
typedef struct gap_counts {
    size_t over_2;
    size_t over_4;
    size_t over_8;
} gap_counts;

typedef struct gap_figures {
    uint64_t remainder; /* not 0 if a gap is not a multiple of the step */
    uint64_t any_bits;  /* OR of the gaps that were measured one by one */
    gap_counts counts;
} gap_figures;

/* Measures the gaps before events `first`..`end` - 1 in steps of `by`, one after the other. */
static void measure_each(const sj_event *events, size_t first, size_t end, const divider *by,
                         uint8_t *gaps, gap_figures *figures)
{
    for (size_t i = first; i < end; i++) {
        const uint64_t ticks = events[i].ticks - events[i - 1].ticks;
        const uint64_t steps = divide(by, ticks);
        figures->any_bits |= ticks;
        figures->remainder |= ticks - steps * by->step;
        gaps[i] = steps < SJ_LONG_GAP ? (uint8_t)steps : SJ_LONG_GAP;
        figures->counts.over_2 += steps >= 3;
        figures->counts.over_4 += steps >= 15;
        figures->counts.over_8 += steps >= SJ_LONG_GAP;
    }
}

#ifdef __SSE2__
enum { EIGHT = 8, EIGHT_MOST_STEP = 32767, SIXTEEN = 16 };

/* Divides gaps below 2^15. Multiples of the step are divided exactly; for other gaps, quotient
 * times step differs from the gap. */
typedef struct divider16 {
    __m128i factor; /* ceil(2^(16 + shift) / step) */
    __m128i shift;
    __m128i step;
} divider16;

static divider16 divider16_of(uint32_t step)
{
    unsigned shift = 0;
    while (UINT32_C(2) << shift < step) {
        shift++;
    }
    const uint64_t whole = UINT64_C(1) << (16 + shift);
    return (divider16){.factor = _mm_set1_epi16((int16_t)(uint16_t)((whole + step - 1) / step)),
                       .shift = _mm_cvtsi32_si128((int)shift),
                       .step = _mm_set1_epi16((int16_t)step)};
}

/* Returns the sum of eight 16-bit counters; each is at most SJ_BLOCK_MAX_EVENTS / 8. */
static size_t sum_of_eight(__m128i counts)
{
    uint16_t each[EIGHT];
    size_t sum = 0;
    memcpy(each, &counts, sizeof(each));
    for (unsigned i = 0; i < EIGHT; i++) {
        sum += each[i];
    }
    return sum;
}

/* Returns the gaps of two events, 64 bits each. */
static inline __m128i gap_pair(const sj_event *event)
{
    __m128i times[3];
    for (int i = 0; i < 3; i++) {
        times[i] = _mm_loadu_si128((const __m128i *)(const void *)(event + i - 1));
    }
    return _mm_unpacklo_epi64(_mm_sub_epi64(times[1], times[0]), _mm_sub_epi64(times[2], times[1]));
}

/* Returns the low 32 bits of four gaps; `*high` gets the upper halves. */
static inline __m128i four_gaps(const sj_event *event, __m128i *high)
{
    const __m128 first = _mm_castsi128_ps(gap_pair(event));
    const __m128 second = _mm_castsi128_ps(gap_pair(event + 2));
    *high = _mm_castps_si128(_mm_shuffle_ps(first, second, _MM_SHUFFLE(3, 1, 3, 1)));
    return _mm_castps_si128(_mm_shuffle_ps(first, second, _MM_SHUFFLE(2, 0, 2, 0)));
}

/* Returns eight gaps of 16 bits in `*gaps`. False if a gap is negative or has more than 15 bits. */
static inline bool eight_gaps(const sj_event *event, __m128i *gaps)
{
    __m128i high[2];
    const __m128i low[] = {four_gaps(event, &high[0]), four_gaps(event + 4, &high[1])};
    const __m128i both = _mm_or_si128(low[0], low[1]);
    const __m128i rest = _mm_or_si128(_mm_or_si128(high[0], high[1]), _mm_srli_epi32(both, 15));
    *gaps = _mm_packs_epi32(low[0], low[1]);
    return _mm_movemask_epi8(_mm_cmpeq_epi8(rest, _mm_setzero_si128())) == 0xffff;
}

/* Like measure_gaps, but stops at a gap that is not a multiple of the step. `is_whole` is a
 * constant: true if the step is 1. */
static inline __attribute__((always_inline)) gap_figures
measure_eights(const sj_event *events, size_t count, const divider *by, bool is_whole,
               uint8_t *gaps)
{
    gap_figures figures = {0};
    const divider16 by16 = divider16_of(by->step);
    __m128i over_2 = _mm_setzero_si128();
    __m128i over_4 = _mm_setzero_si128();
    __m128i over_8 = _mm_setzero_si128();
    size_t i = 1;
    for (; i + EIGHT <= count; i += EIGHT) {
        __m128i ticks;
        const bool is_short = eight_gaps(events + i, &ticks);
        __m128i steps = ticks;
        bool is_even = true;
        if (!is_whole) {
            steps = _mm_srl_epi16(_mm_mulhi_epu16(ticks, by16.factor), by16.shift);
            const __m128i same = _mm_cmpeq_epi16(_mm_mullo_epi16(steps, by16.step), ticks);
            is_even = _mm_movemask_epi8(same) == 0xffff;
        }
        if (!is_short || !is_even) {
            measure_each(events, i, i + EIGHT, by, gaps, &figures);
            if (figures.remainder != 0) {
                return figures;
            }
            continue;
        }
        over_2 = _mm_sub_epi16(over_2, _mm_cmpgt_epi16(steps, _mm_set1_epi16(2)));
        over_4 = _mm_sub_epi16(over_4, _mm_cmpgt_epi16(steps, _mm_set1_epi16(14)));
        over_8 = _mm_sub_epi16(over_8, _mm_cmpgt_epi16(steps, _mm_set1_epi16(SJ_LONG_GAP - 1)));
        const int64_t bytes = _mm_cvtsi128_si64(_mm_packus_epi16(steps, steps));
        memcpy(gaps + i, &bytes, sizeof(bytes));
    }
    measure_each(events, i, count, by, gaps, &figures);
    figures.counts.over_2 += sum_of_eight(over_2);
    figures.counts.over_4 += sum_of_eight(over_4);
    figures.counts.over_8 += sum_of_eight(over_8);
    return figures;
}
#endif

/* Measures all gaps in steps of `step`. The gap of the first event is 0. */
static gap_figures measure_gaps(const sj_event *events, size_t count, uint32_t step, uint8_t *gaps)
{
    const divider by = divider_of(step);
    gaps[0] = 0;
#ifdef __SSE2__
    if (step <= EIGHT_MOST_STEP) {
        return step == 1 ? measure_eights(events, count, &by, true, gaps)
                         : measure_eights(events, count, &by, false, gaps);
    }
#endif
    gap_figures figures = {0};
    measure_each(events, 1, count, &by, gaps, &figures);
    return figures;
}

/* True if time goes backwards anywhere. Gaps are computed modulo 2^64. If time goes backwards, the
 * last time is below the first, or some gap has at least 2^63 / SJ_BLOCK_MAX_EVENTS ticks. So most
 * blocks need no loop. */
static bool goes_back(const sj_event *events, size_t count, uint64_t any_bits)
{
    bool backwards = events[count - 1].ticks < events[0].ticks;
    for (size_t i = 1; i < count && any_bits >> SUSPECT_GAP_BITS != 0; i++) {
        backwards |= events[i].ticks < events[i - 1].ticks;
    }
    return backwards;
}

sj_status sj_times_measure(const sj_event *events, size_t count, uint32_t step, uint8_t *gaps,
                           sj_times_plan *plan)
{
    gap_figures figures = measure_gaps(events, count, step, gaps);
    plan->step = step;
    if (figures.remainder != 0) {
        plan->step = 1;
        figures = measure_gaps(events, count, 1, gaps);
    }
    if (goes_back(events, count, figures.any_bits)) {
        return SJ_EINVAL;
    }
    plan->packing = 2;
    size_t best = count / 4 + figures.counts.over_2;
    if (count / 2 + figures.counts.over_4 < best) {
        plan->packing = 4;
        best = count / 2 + figures.counts.over_4;
    }
    if (count + figures.counts.over_8 < best) {
        plan->packing = 8;
    }
    return SJ_OK;
}

/* Writes the excess of the gap before event `i` over the highest packed gap. */
static void write_escape(const sj_event *events, const uint8_t *gaps, size_t i, uint32_t step,
                         unsigned highest, sj_writer *escapes)
{
    const uint64_t steps =
        gaps[i] < SJ_LONG_GAP ? gaps[i] : (events[i].ticks - events[i - 1].ticks) / step;
    sj_write_varint(escapes, steps - highest);
}

/* Packs the gaps from `first` on, one after the other. `first` must begin a byte. */
static void pack_each(const sj_event *events, const uint8_t *gaps, size_t first, size_t count,
                      const sj_times_plan *plan, uint8_t *packed, sj_writer *escapes)
{
    const size_t per_byte = 8 / plan->packing;
    const unsigned highest = (1U << plan->packing) - 1;
    for (size_t i = first; i < count; i++) {
        const unsigned at = (unsigned)(i % per_byte);
        const unsigned gap = gaps[i] < highest ? gaps[i] : highest;
        uint8_t *byte = &packed[i / per_byte];
        *byte = (uint8_t)((at == 0 ? 0U : *byte) | gap << (at * plan->packing));
        if (gaps[i] >= highest) {
            write_escape(events, gaps, i, plan->step, highest, escapes);
        }
    }
}

#ifdef __SSE2__
/* Packs sixteen gaps of `bits` bits (a constant) into 2 * bits bytes. */
static inline __attribute__((always_inline)) void pack_sixteen(__m128i gaps, unsigned bits,
                                                               uint8_t *packed)
{
    if (bits == 8) {
        memcpy(packed, &gaps, sizeof(gaps));
        return;
    }
    const __m128i pairs = _mm_and_si128(_mm_or_si128(gaps, _mm_srli_epi16(gaps, 8 - (int)bits)),
                                        _mm_set1_epi16((int16_t)((1 << 2 * bits) - 1)));
    if (bits == 4) {
        const int64_t bytes = _mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs));
        memcpy(packed, &bytes, sizeof(bytes));
        return;
    }
    const __m128i fours =
        _mm_and_si128(_mm_or_si128(pairs, _mm_srli_epi32(pairs, 12)), _mm_set1_epi32(0xff));
    const __m128i words = _mm_packs_epi32(fours, fours);
    const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    memcpy(packed, &bytes, sizeof(bytes));
}

/* Packs all gaps. Compiled once for each packing. */
static inline __attribute__((always_inline)) void
pack_gaps(const sj_event *events, const uint8_t *gaps, size_t count, const sj_times_plan *plan,
          unsigned bits, uint8_t *packed, sj_writer *escapes)
{
    const unsigned highest = (1U << bits) - 1;
    const __m128i most = _mm_set1_epi8((int8_t)highest);
    size_t i = 0;
    for (; i + SIXTEEN <= count; i += SIXTEEN) {
        __m128i sixteen;
        memcpy(&sixteen, gaps + i, sizeof(sixteen));
        const __m128i packable = _mm_min_epu8(sixteen, most);
        unsigned escaped = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(packable, most));
        pack_sixteen(packable, bits, packed + i * bits / 8);
        for (; escaped != 0; escaped &= escaped - 1) {
            write_escape(events, gaps, i + (size_t)__builtin_ctz(escaped), plan->step, highest,
                         escapes);
        }
    }
    pack_each(events, gaps, i, count, plan, packed, escapes);
}
#else
static void pack_gaps(const sj_event *events, const uint8_t *gaps, size_t count,
                      const sj_times_plan *plan, unsigned bits, uint8_t *packed, sj_writer *escapes)
{
    (void)bits;
    pack_each(events, gaps, 0, count, plan, packed, escapes);
}
#endif

void sj_times_encode(const sj_event *events, const uint8_t *gaps, size_t count,
                     const sj_times_plan *plan, sj_writer *packed, sj_writer *escapes)
{
    const size_t bytes = (count * plan->packing + 7) / 8;
    sj_write_u8(packed, (uint8_t)plan->packing);
    if ((size_t)(packed->end - packed->at) < bytes) {
        packed->bad = true;
        return;
    }
    if (plan->packing == 2) {
        pack_gaps(events, gaps, count, plan, 2, packed->at, escapes);
    } else if (plan->packing == 4) {
        pack_gaps(events, gaps, count, plan, 4, packed->at, escapes);
    } else {
        pack_gaps(events, gaps, count, plan, 8, packed->at, escapes);
    }
    packed->at += bytes;
}
