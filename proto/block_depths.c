/* Depths of a block's calls, four symbols at a time: which of them are ENTERs makes a number below
 * 16, and a table says what those four do to the depth. */
#include "proto/block_internal.h"

typedef struct four_steps {
    int32_t net;
    int32_t lowest;  /* of the depths after each, relative to the one before */
    int32_t entered; /* highest after an ENTER; INT32_MIN: none */
} four_steps;

enum { FOUR = 4, PATTERNS = 1 << FOUR };

static void fill_patterns(four_steps *patterns)
{
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        four_steps steps = {.entered = INT32_MIN};
        for (unsigned k = 0; k < FOUR; k++) {
            const bool enters = (pattern >> k & 1) != 0;
            steps.net += enters ? 1 : -1;
            steps.lowest = steps.net < steps.lowest ? steps.net : steps.lowest;
            steps.entered = enters && steps.net > steps.entered ? steps.net : steps.entered;
        }
        patterns[pattern] = steps;
    }
}

/* Bit k is set when the k-th of four 16-bit symbols is not 0. */
static inline unsigned pattern_of(const uint16_t *symbols)
{
    const uint64_t low_bits = UINT64_C(0x7fff7fff7fff7fff);
    uint64_t four;
    memcpy(&four, symbols, sizeof(four));
    const uint64_t set = (((four & low_bits) + low_bits) | four) & ~low_bits;
    /* the four bits, 16 apart, to 48..51 */
    return (unsigned)((set >> 15) * UINT64_C(0x0001000200040008) >> 48) & (PATTERNS - 1);
}

static inline void step(sj_block_depths *depths, uint32_t symbol)
{
    depths->end += symbol != 0 ? 1 : -1;
    depths->lowest = depths->end < depths->lowest ? depths->end : depths->lowest;
    if (symbol != 0 && depths->end > depths->entered) {
        depths->entered = depths->end;
    }
}

sj_block_depths sj_block_measure_depths(const sj_block *block)
{
    const size_t count = block->header.event_count;
    const int64_t open = block->header.open_depth;
    sj_block_depths depths = {.lowest = open, .end = open};
    size_t i = 0;
    if (block->symbols16 != NULL) {
        four_steps patterns[PATTERNS];
        fill_patterns(patterns);
        for (; i + FOUR <= count; i += FOUR) {
            const four_steps *steps = &patterns[pattern_of(block->symbols16 + i)];
            const int64_t lowest = depths.end + steps->lowest;
            const int64_t entered = depths.end + steps->entered;
            depths.lowest = lowest < depths.lowest ? lowest : depths.lowest;
            depths.entered = entered > depths.entered ? entered : depths.entered;
            depths.end += steps->net;
        }
    }
    for (; i < count; i++) {
        step(&depths, block->symbols16 != NULL ? block->symbols16[i] : block->symbols32[i]);
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
