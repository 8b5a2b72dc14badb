/* Decodes AArch64 instruction words: the kind of a pc-relative or branch instruction, and its
 * distance. Freestanding: the planner and the agent use it. */
#ifndef SJ_AGENT_ABI_AARCH64_WORDS_H
#define SJ_AGENT_ABI_AARCH64_WORDS_H

#include <stdbool.h>
#include <stdint.h>

enum { SJ_WORD_BYTES = 4, SJ_WORD_PAGE_BITS = 12, SJ_WORD_LINK_REGISTER = 30 };

typedef enum sj_word_class {
    SJ_WORD_PLAIN = 0, /* runs at any address unchanged */
    SJ_WORD_B,
    SJ_WORD_BL,
    SJ_WORD_B_COND,
    SJ_WORD_COMPARE_BRANCH, /* runs anywhere unchanged */
    SJ_WORD_TEST_BRANCH,    /* tbz, tbnz */
    SJ_WORD_ADR,
    SJ_WORD_ADRP,
    SJ_WORD_LITERAL /* ldr or ldrsw of a general register, pc-relative */
} sj_word_class;

static inline uint32_t sj_word_read(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

/* True for a pc-relative load of a vector register, and for a prefetch. These cannot be moved,
 * because no register is free for their address. */
static inline bool sj_word_is_fixed_literal(uint32_t word)
{
    const bool is_literal = (word & UINT32_C(0x3b000000)) == UINT32_C(0x18000000);
    const bool is_vector = (word >> 26 & 1) != 0;
    const bool is_prefetch = word >> 30 == 3;
    return is_literal && (is_vector || is_prefetch || (word & 31) == 31);
}

static inline sj_word_class sj_word_class_of(uint32_t word)
{
    switch (word & UINT32_C(0x7e000000)) {
    case UINT32_C(0x34000000):
        return SJ_WORD_COMPARE_BRANCH;
    case UINT32_C(0x36000000):
        return SJ_WORD_TEST_BRANCH;
    default:
        break;
    }
    if ((word & UINT32_C(0x7c000000)) == UINT32_C(0x14000000)) {
        return word >> 31 != 0 ? SJ_WORD_BL : SJ_WORD_B;
    }
    if ((word & UINT32_C(0xff000000)) == UINT32_C(0x54000000)) {
        return SJ_WORD_B_COND;
    }
    if ((word & UINT32_C(0x1f000000)) == UINT32_C(0x10000000)) {
        return word >> 31 != 0 ? SJ_WORD_ADRP : SJ_WORD_ADR;
    }
    if ((word & UINT32_C(0x3b000000)) == UINT32_C(0x18000000) && !sj_word_is_fixed_literal(word)) {
        return SJ_WORD_LITERAL;
    }
    return SJ_WORD_PLAIN;
}

/* Returns the signed field of `bits` bits that starts at bit `low` of a word. */
static inline int64_t sj_word_field(uint32_t word, uint32_t low, uint32_t bits)
{
    const uint64_t value = (uint64_t)(word >> low) << (64 - bits);
    return (int64_t)value >> (64 - bits);
}

/* Returns the distance in bytes from a pc-relative word to its target; for adrp, from the start of
 * the word's page. */
static inline int64_t sj_word_distance(uint32_t word)
{
    const int64_t pieces = sj_word_field(word, 5, 19) * 4 + (word >> 29 & 3);
    switch (sj_word_class_of(word)) {
    case SJ_WORD_B:
    case SJ_WORD_BL:
        return sj_word_field(word, 0, 26) * SJ_WORD_BYTES;
    case SJ_WORD_TEST_BRANCH:
        return sj_word_field(word, 5, 14) * SJ_WORD_BYTES;
    case SJ_WORD_ADR:
        return pieces;
    case SJ_WORD_ADRP:
        return pieces * (1 << SJ_WORD_PAGE_BITS);
    case SJ_WORD_PLAIN:
        return 0;
    default:
        return sj_word_field(word, 5, 19) * SJ_WORD_BYTES;
    }
}

#endif
