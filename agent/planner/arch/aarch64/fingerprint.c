#include "agent/abi/aarch64_words.h"
#include "agent/planner/arch/aarch64/aarch64.h"

/* Returns a mask of the bits of a word that hold a distance. */
static uint32_t distance_bits(uint32_t word)
{
    switch (sj_word_class_of(word)) {
    case SJ_WORD_B:
    case SJ_WORD_BL:
        return UINT32_C(0x03ffffff);
    case SJ_WORD_TEST_BRANCH:
        return UINT32_C(0x0007ffe0);
    case SJ_WORD_ADR:
    case SJ_WORD_ADRP:
        return UINT32_C(0x60ffffe0);
    case SJ_WORD_B_COND:
    case SJ_WORD_COMPARE_BRANCH:
    case SJ_WORD_LITERAL:
        return UINT32_C(0x00ffffe0);
    case SJ_WORD_PLAIN:
        break;
    }
    return sj_word_is_fixed_literal(word) ? UINT32_C(0x00ffffe0) : 0;
}

/* An address consists of a page from adrp and an offset in a later add, load or store. `*pages` has
 * one bit for each register that holds a page. */
void sj_aarch64_mask_addresses(const sj_module *module, const sj_code *code, uint8_t *bytes,
                               uint32_t *pages)
{
    (void)module;
    if (code->length != SJ_WORD_BYTES) {
        return;
    }
    uint32_t word = sj_word_read(bytes);
    const uint32_t target = UINT32_C(1) << (word & 31);
    const bool is_on_page = (*pages >> (word >> 5 & 31) & 1) != 0;
    const bool is_add = (word & UINT32_C(0xffc00000)) == UINT32_C(0x91000000);
    const bool is_access = (word & UINT32_C(0x3b000000)) == UINT32_C(0x39000000);
    if (sj_word_class_of(word) == SJ_WORD_ADRP) {
        *pages |= target;
    } else if (is_add) {
        *pages &= ~target; /* the register now holds a whole address or another value */
    }
    const bool has_offset = is_on_page && (is_add || is_access);
    word &= ~(distance_bits(word) | (has_offset ? UINT32_C(0x003ffc00) : 0));
    for (int i = 0; i < SJ_WORD_BYTES; i++) {
        bytes[i] = (uint8_t)(word >> 8 * i);
    }
}
