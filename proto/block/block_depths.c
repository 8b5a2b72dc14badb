/* Computes the depths of a block's calls, eight symbols at a time. The eight symbols form a
 * pattern: one bit each, 1 for an ENTER. A table has the effect of each pattern on the depth. */
#include "proto/block/block_internal.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    PATTERN_BITS = 8,
    PATTERNS = 1 << PATTERN_BITS,
    PIECE = 2 * PATTERN_BITS,
    MOST_PIECES = 512 /* per batch: the depth then changes by less than 16 bits hold */
};

/* The effect of one pattern: the depth after its eight symbols, and the highest and lowest depth
 * within. Depths are relative to the depth before. The lowest is stored negated, so that one
 * maximum serves both. The fields repeat so that one vector addition rebases an entry on the end of
 * the one before. */
typedef struct eight_steps {
    _Alignas(16) int16_t end[4];
    int16_t extremes[4];
} eight_steps;

#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define MORE(a, b) ((a) > (b) ? (a) : (b))

/* For a pattern of four symbols, with the first symbol in its lowest bit: the depth after each
 * symbol. */
#define STEP(p, k) (((p) >> (k)&1) != 0 ? 1 : -1)
#define DEPTH_0(p) STEP(p, 0)
#define DEPTH_1(p) (DEPTH_0(p) + STEP(p, 1))
#define DEPTH_2(p) (DEPTH_1(p) + STEP(p, 2))
#define DEPTH_3(p) (DEPTH_2(p) + STEP(p, 3))
#define LOWEST_4(p) LESS(LESS(DEPTH_0(p), DEPTH_1(p)), LESS(DEPTH_2(p), DEPTH_3(p)))
#define HIGHEST_4(p) MORE(MORE(DEPTH_0(p), DEPTH_1(p)), MORE(DEPTH_2(p), DEPTH_3(p)))

/* For a pattern of eight symbols: the first four, then the last four on top of them. */
#define END(p) (DEPTH_3((p)&15) + DEPTH_3((p) >> 4))
#define LOWEST(p) LESS(LOWEST_4((p)&15), DEPTH_3((p)&15) + LOWEST_4((p) >> 4))
#define HIGHEST(p) MORE(HIGHEST_4((p)&15), DEPTH_3((p)&15) + HIGHEST_4((p) >> 4))
#define STEPS(p)                                                                                   \
    {                                                                                              \
        .end = {END(p), -END(p), END(p), -END(p)},                                                 \
        .extremes = {HIGHEST(p), -LOWEST(p), HIGHEST(p), -LOWEST(p)},                              \
    }
#define STEPS_4(p) STEPS(p), STEPS((p) + 1), STEPS((p) + 2), STEPS((p) + 3)
#define STEPS_16(p) STEPS_4(p), STEPS_4((p) + 4), STEPS_4((p) + 8), STEPS_4((p) + 12)
#define STEPS_64(p) STEPS_16(p), STEPS_16((p) + 16), STEPS_16((p) + 32), STEPS_16((p) + 48)

static const eight_steps patterns[PATTERNS] = {STEPS_64(0), STEPS_64(64), STEPS_64(128),
                                               STEPS_64(192)};

static inline void step(sj_block_depths *depths, uint32_t symbol)
{
    depths->end += symbol != 0 ? 1 : -1;
    depths->lowest = depths->end < depths->lowest ? depths->end : depths->lowest;
    if (symbol != 0 && depths->end > depths->entered) {
        depths->entered = depths->end;
    }
}

/* Returns the effect of `pieces` times sixteen symbols, like a table entry. */
#ifdef __SSE2__
static inline __m128i step_eight(__m128i before, uint32_t pattern, __m128i *most)
{
    const __m128i after = _mm_add_epi16(before, *(const __m128i *)&patterns[pattern]);
    *most = _mm_max_epi16(*most, after);
    return _mm_unpacklo_epi64(after, after);
}

static eight_steps step_pieces(const uint16_t *symbols, size_t pieces)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i end = zero;
    __m128i most = _mm_set1_epi16(INT16_MIN);
    for (size_t i = 0; i < pieces; i++) {
        __m128i halves[2];
        memcpy(halves, symbols + i * PIECE, sizeof(halves));
        const __m128i leaves =
            _mm_packs_epi16(_mm_cmpeq_epi16(halves[0], zero), _mm_cmpeq_epi16(halves[1], zero));
        const uint32_t enters = (uint32_t)_mm_movemask_epi8(leaves) ^ 0xffff;
        end = step_eight(end, enters % PATTERNS, &most);
        end = step_eight(end, enters >> PATTERN_BITS, &most);
    }
    eight_steps steps;
    memcpy(&steps, &most, sizeof(steps));
    memcpy(steps.end, &end, sizeof(steps.end));
    return steps;
}
#else
static eight_steps step_pieces(const uint16_t *symbols, size_t pieces)
{
    int16_t end = 0;
    int16_t highest = INT16_MIN;
    int16_t lowest_negated = INT16_MIN;
    for (size_t i = 0; i < pieces * PIECE; i += PATTERN_BITS) {
        uint32_t pattern = 0;
        for (unsigned k = 0; k < PATTERN_BITS; k++) {
            pattern |= (uint32_t)(symbols[i + k] != 0) << k;
        }
        const eight_steps *steps = &patterns[pattern];
        highest = (int16_t)MORE(highest, end + steps->extremes[0]);
        lowest_negated = (int16_t)MORE(lowest_negated, steps->extremes[1] - end);
        end = (int16_t)(end + steps->end[0]);
    }
    return (eight_steps){.end = {end}, .extremes = {highest, lowest_negated}};
}
#endif

/* Adds the effect of symbols. An ENTER must precede them: then the highest depth is always the
 * depth after an ENTER. */
static void add_pieces(sj_block_depths *depths, const uint16_t *symbols, size_t pieces)
{
    const eight_steps steps = step_pieces(symbols, pieces);
    const int64_t highest = depths->end + steps.extremes[0];
    const int64_t lowest = depths->end - steps.extremes[1];
    depths->entered = MORE(highest, depths->entered);
    depths->lowest = LESS(lowest, depths->lowest);
    depths->end += steps.end[0];
}

sj_block_depths sj_block_measure_depths(const sj_block *block)
{
    const size_t count = block->header.event_count;
    const int64_t open = block->header.open_depth;
    const uint16_t *symbols16 = block->symbols16;
    sj_block_depths depths = {.lowest = open, .end = open};
    size_t i = 0;
    if (symbols16 != NULL) {
        for (bool entered = false; i < count && !entered; i++) {
            step(&depths, symbols16[i]);
            entered = symbols16[i] != 0;
        }
        while (i + PIECE <= count) {
            const size_t left = (count - i) / PIECE;
            const size_t pieces = LESS(left, MOST_PIECES);
            add_pieces(&depths, symbols16 + i, pieces);
            i += pieces * PIECE;
        }
    }
    for (; i < count; i++) {
        step(&depths, symbols16 != NULL ? symbols16[i] : block->symbols32[i]);
    }
    return depths;
}

/* Returns a block with the events [from, to) that suffices to measure their depths. */
static sj_block cut_block(const sj_block *block, size_t from, size_t to, int64_t depth)
{
    sj_block part = {.symbols16 = block->symbols16, .symbols32 = block->symbols32};
    part.header.open_depth = (uint32_t)depth;
    part.header.event_count = (uint32_t)(to - from);
    if (part.symbols16 != NULL) {
        part.symbols16 += from;
    } else {
        part.symbols32 += from;
    }
    return part;
}

sj_block_depths sj_block_measure_steps(const sj_block *block, sj_block_depths *steps,
                                       size_t *step_count)
{
    const size_t count = block->header.event_count;
    const size_t every = (size_t)1 << SJ_BLOCK_STEP_BITS;
    const int64_t open = block->header.open_depth;
    sj_block_depths whole = {.lowest = open, .end = open};
    size_t from = 0;
    *step_count = 0;
    while (from < count && whole.lowest >= 0) {
        const size_t rest = every - ((block->header.first_event + from) & (every - 1));
        const size_t to = rest < count - from ? from + rest : count;
        const sj_block part = cut_block(block, from, to, whole.end);
        const sj_block_depths depths = sj_block_measure_depths(&part);
        whole.lowest = depths.lowest < whole.lowest ? depths.lowest : whole.lowest;
        whole.entered = depths.entered > whole.entered ? depths.entered : whole.entered;
        whole.end = depths.end;
        steps[(*step_count)++] = depths;
        from = to;
    }
    return whole;
}
