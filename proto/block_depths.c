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
