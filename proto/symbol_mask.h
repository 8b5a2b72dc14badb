/* Symbols as bits: which of 16 are ENTERs. */
#ifndef SJ_PROTO_SYMBOL_MASK_H
#define SJ_PROTO_SYMBOL_MASK_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { SJ_MASK_SYMBOLS = 16 };

/* sj_symbol_mask returns a bit for each of SJ_MASK_SYMBOLS symbols, 1 for an ENTER, the first in
 * the lowest. */
static inline uint32_t sj_symbol_mask(const uint16_t *symbols)
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
    for (unsigned k = 0; k < SJ_MASK_SYMBOLS; k++) {
        enters |= (uint32_t)(symbols[k] != 0) << k;
    }
    return enters;
#endif
}

#endif
