/* Depths of a block's calls, eight symbols at a time: which of them are ENTERs makes a number below
 * 256, and a table says what those eight do to the depth. */
#include "proto/block_internal.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { PATTERN_BITS = 8, PATTERNS = 1 << PATTERN_BITS, PIECE = 16 };

typedef struct eight_steps {
    int8_t net;
    int8_t lowest; /* of the depths after each, relative to the one before all */
    int8_t highest;
} eight_steps;

#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define MORE(a, b) ((a) > (b) ? (a) : (b))

/* Of a pattern of four symbols, the first in its lowest bit: the depth after each. */
#define STEP(p, k) (((p) >> (k)&1) != 0 ? 1 : -1)
#define DEPTH_0(p) STEP(p, 0)
#define DEPTH_1(p) (DEPTH_0(p) + STEP(p, 1))
#define DEPTH_2(p) (DEPTH_1(p) + STEP(p, 2))
#define DEPTH_3(p) (DEPTH_2(p) + STEP(p, 3))
#define LOWEST_4(p) LESS(LESS(DEPTH_0(p), DEPTH_1(p)), LESS(DEPTH_2(p), DEPTH_3(p)))
#define HIGHEST_4(p) MORE(MORE(DEPTH_0(p), DEPTH_1(p)), MORE(DEPTH_2(p), DEPTH_3(p)))

/* Of eight: those of the first four, and those of the others on top of them. */
#define STEPS(p)                                                                                   \
    {                                                                                              \
        .net = DEPTH_3((p)&15) + DEPTH_3((p) >> 4),                                                \
        .lowest = LESS(LOWEST_4((p)&15), DEPTH_3((p)&15) + LOWEST_4((p) >> 4)),                    \
        .highest = MORE(HIGHEST_4((p)&15), DEPTH_3((p)&15) + HIGHEST_4((p) >> 4)),                 \
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

/* Which of the PIECE symbols are ENTERs, the first in the lowest bit. */
static inline uint32_t enters_of(const uint16_t *symbols)
{
#ifdef __SSE2__
    __m128i halves[2];
    memcpy(halves, symbols, sizeof(halves));
    const __m128i zero = _mm_setzero_si128();
    const __m128i leaves =
        _mm_packs_epi16(_mm_cmpeq_epi16(halves[0], zero), _mm_cmpeq_epi16(halves[1], zero));
    return (uint32_t)_mm_movemask_epi8(leaves) ^ 0xffff;
#else
    uint32_t enters = 0;
    for (unsigned k = 0; k < PIECE; k++) {
        enters |= (uint32_t)(symbols[k] != 0) << k;
    }
    return enters;
#endif
}

/* There was an ENTER before: from then on the greatest depth is always one that an ENTER led to. */
static inline void step_pattern(sj_block_depths *depths, uint32_t pattern)
{
    const eight_steps *steps = &patterns[pattern];
    const int64_t lowest = depths->end + steps->lowest;
    const int64_t highest = depths->end + steps->highest;
    depths->lowest = lowest < depths->lowest ? lowest : depths->lowest;
    depths->entered = highest > depths->entered ? highest : depths->entered;
    depths->end += steps->net;
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
        for (; i + PIECE <= count; i += PIECE) {
            const uint32_t enters = enters_of(symbols16 + i);
            step_pattern(&depths, enters % PATTERNS);
            step_pattern(&depths, enters >> PATTERN_BITS);
        }
    }
    for (; i < count; i++) {
        step(&depths, symbols16 != NULL ? symbols16[i] : block->symbols32[i]);
    }
    return depths;
}

/* The events [from, to) of a block as a block of their own, as far as depths go. */
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
