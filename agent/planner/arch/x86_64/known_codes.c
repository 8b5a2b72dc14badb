#include "agent/planner/arch/x86_64/known_codes.h"

#include <stdlib.h>
#include <string.h>

/* Design notes. The head of an instruction (prefixes, opcode, ModRM and SIB) determines its kind
 * and length. This code finds the end of the head by a few rules of the common encoding. The cache
 * learns from the decoder which opcodes have a ModRM byte. An instruction is stored only if the
 * decoder found the same end of its head, and it is found only by its whole head, so wrong rules
 * cannot give wrong results. Some instructions are not stored: other encodings, invalid or pinned
 * ones, and shifts, which keep the flags if the immediate is zero. */

enum {
    SLOTS_BITS = 13,
    SLOTS = 1 << SLOTS_BITS,
    HEAD_MOST_BYTES = 7,
    WORD_BYTES = 8,
    PREFIXES_MOST = 3,
    TWO_BYTE_OPCODE = 0x0f,
    REX = 0x40,
    REX_MASK = 0xf0,
    BY_SIB = 4 /* r/m field: a SIB byte follows */
};

typedef enum modrm_use { MODRM_UNKNOWN, MODRM_NONE, MODRM_HERE } modrm_use;

typedef struct known_code {
    uint64_t head; /* as a little-endian word; bytes after `head_bytes` are zero */
    sj_code code;  /* `at` and `value` are zero */
    uint8_t head_bytes;
    uint8_t value_at; /* offset in the instruction */
    uint8_t value_bytes;
    uint8_t immediate_at;
    uint8_t immediate_bytes;
    bool has_signed_immediate;
} known_code;

struct sj_known_codes {
    /* modrm_use by two indexes: whether the opcode has two bytes, and its last byte */
    uint8_t modrm[2][256];
    known_code slots[SLOTS];
};

sj_known_codes *sj_known_codes_new(void)
{
    return calloc(1, sizeof(sj_known_codes));
}

static uint64_t read_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

static uint8_t byte_of(uint64_t word, unsigned index)
{
    return (uint8_t)(word >> (8 * index));
}

static bool is_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return false;
    }
}

/* Returns the offset of the opcode's last byte. */
static unsigned find_opcode(uint64_t word, bool *has_two_bytes)
{
    unsigned at = 0;
    while (at < PREFIXES_MOST && is_prefix(byte_of(word, at))) {
        at++;
    }
    at += (byte_of(word, at) & REX_MASK) == REX;
    *has_two_bytes = byte_of(word, at) == TWO_BYTE_OPCODE;
    return at + *has_two_bytes;
}

/* Returns the size of the head by the rules of the encoding. */
static unsigned head_bytes(uint64_t word, unsigned opcode_at, modrm_use use)
{
    const uint8_t modrm = byte_of(word, opcode_at + 1);
    const bool has_sib = use == MODRM_HERE && (modrm & 0xc0) != 0xc0 && (modrm & 7) == BY_SIB;
    return opcode_at + 1 + (use == MODRM_HERE) + has_sib;
}

static uint64_t head_of(uint64_t word, unsigned bytes)
{
    return word & (UINT64_MAX >> (64 - 8 * bytes));
}

static unsigned slot_of(uint64_t head)
{
    return (unsigned)(head * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOTS_BITS));
}

static int64_t read_signed(const uint8_t *bytes, uint8_t size)
{
    int32_t word;
    int64_t two_words;
    switch (size) {
    case 0:
        return 0;
    case 1:
        return (int8_t)bytes[0];
    case 4:
        memcpy(&word, bytes, sizeof(word));
        return word;
    default:
        memcpy(&two_words, bytes, sizeof(two_words));
        return two_words;
    }
}

bool sj_known_codes_find(const sj_known_codes *known, const uint8_t *bytes, size_t size,
                         uint32_t at, sj_code *code, uint64_t *immediate)
{
    bool has_two_bytes;
    if (size < WORD_BYTES) {
        return false;
    }
    const uint64_t word = read_word(bytes);
    const unsigned opcode_at = find_opcode(word, &has_two_bytes);
    const modrm_use use = known->modrm[has_two_bytes][byte_of(word, opcode_at)];
    const unsigned count = head_bytes(word, opcode_at, use);
    if (use == MODRM_UNKNOWN || count > HEAD_MOST_BYTES) {
        return false;
    }
    const uint64_t head = head_of(word, count);
    const known_code *slot = &known->slots[slot_of(head)];
    if (slot->head != head || slot->head_bytes != count || size < slot->code.length) {
        return false;
    }
    *code = slot->code;
    code->at = at;
    code->value = (int32_t)read_signed(bytes + slot->value_at, slot->value_bytes);
    *immediate = (uint64_t)read_signed(bytes + slot->immediate_at, slot->immediate_bytes);
    if (!slot->has_signed_immediate && slot->immediate_bytes == sizeof(uint32_t)) {
        *immediate = (uint32_t)*immediate;
    }
    return true;
}

/* True if the decoding depends only on the head. */
static bool can_be_cached(const ZydisDecodedInstruction *decoded, const sj_code *code)
{
    const bool is_shift = decoded->mnemonic == ZYDIS_MNEMONIC_SAR ||
                          decoded->mnemonic == ZYDIS_MNEMONIC_SHL ||
                          decoded->mnemonic == ZYDIS_MNEMONIC_SHR;
    const bool is_common = decoded->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ||
                           decoded->opcode_map == ZYDIS_OPCODE_MAP_0F;
    const bool is_narrow_branch =
        (code->flags & SJ_CODE_BRANCH) != 0 && decoded->raw.imm[0].size == 16;
    return decoded->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && is_common && !is_shift &&
           !is_narrow_branch && code->kind != SJ_CODE_BAD && code->kind != SJ_CODE_PINNED;
}

/* Returns the size of the head as the decoder found it. A displacement and an immediate operand
 * follow the head. */
static unsigned true_head_bytes(const ZydisDecodedInstruction *decoded)
{
    if (decoded->raw.disp.size != 0) {
        return decoded->raw.disp.offset;
    }
    return decoded->raw.imm[0].size != 0 ? decoded->raw.imm[0].offset : decoded->length;
}

/* Stores where the value and the immediate operand are in the instruction. */
static void set_fields(known_code *slot, const ZydisDecodedInstruction *decoded)
{
    enum { BYTE_BITS = 8, LEAST_IMMEDIATE_BITS = 32 };
    const uint8_t flags = slot->code.flags;
    if ((flags & SJ_CODE_BRANCH) != 0) {
        slot->value_at = decoded->raw.imm[0].offset;
        slot->value_bytes = decoded->raw.imm[0].size / BYTE_BITS;
        return;
    }
    if ((flags & (SJ_CODE_RELATIVE | SJ_CODE_TABLE)) != 0) {
        slot->value_at = decoded->raw.disp.offset;
        slot->value_bytes = decoded->raw.disp.size / BYTE_BITS;
    }
    if (decoded->raw.imm[0].size >= LEAST_IMMEDIATE_BITS) {
        slot->immediate_at = decoded->raw.imm[0].offset;
        slot->immediate_bytes = decoded->raw.imm[0].size / BYTE_BITS;
        slot->has_signed_immediate = decoded->raw.imm[0].is_signed;
    }
}

void sj_known_codes_add(sj_known_codes *known, const uint8_t *bytes, size_t size,
                        const ZydisDecodedInstruction *decoded, const sj_code *code)
{
    bool has_two_bytes;
    if (size < WORD_BYTES || !can_be_cached(decoded, code)) {
        return;
    }
    const uint64_t word = read_word(bytes);
    const unsigned opcode_at = find_opcode(word, &has_two_bytes);
    const bool has_modrm = (decoded->attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0;
    const modrm_use use = has_modrm ? MODRM_HERE : MODRM_NONE;
    const unsigned count = head_bytes(word, opcode_at, use);
    if (count > HEAD_MOST_BYTES || count != true_head_bytes(decoded) ||
        byte_of(word, opcode_at) != decoded->opcode) {
        return;
    }
    const uint64_t head = head_of(word, count);
    known_code *slot = &known->slots[slot_of(head)];
    known->modrm[has_two_bytes][decoded->opcode] = (uint8_t)use;
    *slot = (known_code){.head = head, .head_bytes = (uint8_t)count, .code = *code};
    slot->code.at = 0;
    slot->code.value = 0;
    set_fields(slot, decoded);
}
