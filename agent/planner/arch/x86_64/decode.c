#include "agent/planner/arch/x86_64/known_codes.h"
#include "agent/planner/arch/x86_64/x86_64.h"

#include <stdlib.h>
#include <string.h>

enum { PREFIX_OPERAND_SIZE = 0x66, PREFIX_ADDRESS_SIZE = 0x67 };

enum { CODES_BEFORE_CACHE = 1 << 10 }; /* fewer instructions are not worth a cache */

typedef struct decoder_state {
    ZydisDecoder zydis;
    sj_known_codes *known; /* NULL: not allocated yet */
    uint32_t decoded;      /* number of decoded instructions; stops when `known` is allocated */
} decoder_state;

sj_status sj_x86_64_open_decoder(sj_decoder *decoder)
{
    decoder_state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        return SJ_ENOMEM;
    }
    /* Both calls fail only for wrong constants. The minimal mode, without operands, is twice as
     * fast. */
    (void)ZydisDecoderInit(&state->zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    (void)ZydisDecoderEnableMode(&state->zydis, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
    decoder->state = state;
    return SJ_OK;
}

void sj_x86_64_close_decoder(sj_decoder *decoder)
{
    decoder_state *state = decoder->state;
    free(state->known);
    free(state);
}

static bool has_prefix(const ZydisDecodedInstruction *decoded, uint8_t value)
{
    for (unsigned i = 0; i < decoded->raw.prefix_count; i++) {
        if (decoded->raw.prefixes[i].value == value) {
            return true;
        }
    }
    return false;
}

static void decode_direct(const ZydisDecodedInstruction *decoded, sj_code_kind kind, sj_code *code)
{
    code->value = (int32_t)decoded->raw.imm[0].value.s;
    code->flags |= SJ_CODE_BRANCH;
    /* Branches with a 16-bit operand size differ between processors' vendors. rex.W overrides that
     * size; calls of __tls_get_addr use both prefixes as filler. */
    const bool is_narrow = has_prefix(decoded, PREFIX_OPERAND_SIZE) && decoded->raw.rex.W == 0;
    code->kind = (uint8_t)(is_narrow ? SJ_CODE_BAD : kind);
}

/* Decodes FF /2 (call) and FF /4 (jmp). The far forms, /3 and /5, become SJ_CODE_PINNED. */
static void decode_indirect(const ZydisDecodedInstruction *decoded, bool is_call, sj_code *code)
{
    const uint8_t wanted = is_call ? 2 : 4;
    if (decoded->opcode != 0xff || (decoded->raw.modrm.reg & 7) != wanted ||
        has_prefix(decoded, PREFIX_OPERAND_SIZE)) {
        code->kind = SJ_CODE_PINNED;
        return;
    }
    code->kind = (uint8_t)(is_call ? SJ_CODE_CALL_INDIRECT : SJ_CODE_JUMP_INDIRECT);
    if (decoded->raw.modrm.mod == 3) {
        return;
    }
    code->flags |= SJ_CODE_MEMORY;
    if (decoded->raw.modrm.rm == 4) {
        const bool is_absolute = decoded->raw.modrm.mod == 0 && decoded->raw.sib.base == 5;
        if (is_absolute && decoded->raw.sib.scale == 3) {
            code->flags |= SJ_CODE_TABLE;
            code->value = (int32_t)decoded->raw.disp.value;
        } else if (decoded->raw.sib.base == 4 && decoded->raw.rex.B == 0) {
            code->flags |= SJ_CODE_STACK;
        }
    }
}

/* Sets the kind of an instruction that transfers control, does nothing or stops. */
static void decode_transfer(const ZydisDecodedInstruction *decoded, sj_code *code)
{
    switch (decoded->mnemonic) {
    case ZYDIS_MNEMONIC_RET:
        code->kind =
            (decoded->opcode == 0xc3 || decoded->opcode == 0xc2) ? SJ_CODE_RETURN : SJ_CODE_PINNED;
        return;
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_JMP:
        if (decoded->raw.imm[0].is_relative) {
            decode_direct(decoded,
                          decoded->mnemonic == ZYDIS_MNEMONIC_CALL ? SJ_CODE_CALL : SJ_CODE_JUMP,
                          code);
        } else {
            decode_indirect(decoded, decoded->mnemonic == ZYDIS_MNEMONIC_CALL, code);
        }
        return;
    case ZYDIS_MNEMONIC_NOP:
        code->kind = SJ_CODE_NOP;
        return;
    case ZYDIS_MNEMONIC_INT3:
        code->kind = SJ_CODE_BREAK;
        return;
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
        code->kind = SJ_CODE_STOP;
        return;
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
        code->kind = SJ_CODE_PINNED;
        return;
    default:
        break;
    }
    if (decoded->raw.imm[0].is_relative) {
        const bool is_conditional =
            (decoded->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (decoded->opcode & 0xf0) == 0x70) ||
            (decoded->opcode_map == ZYDIS_OPCODE_MAP_0F && (decoded->opcode & 0xf0) == 0x80);
        decode_direct(decoded, is_conditional ? SJ_CODE_JUMP_IF : SJ_CODE_PINNED, code);
    }
}

/* Adds an instruction to the cache. Allocates the cache after CODES_BEFORE_CACHE instructions. */
static void cache_code(decoder_state *state, const uint8_t *bytes, size_t size,
                       const ZydisDecodedInstruction *decoded, const sj_code *code)
{
    if (state->known != NULL) {
        sj_known_codes_add(state->known, bytes, size, decoded, code);
    } else if (++state->decoded == CODES_BEFORE_CACHE) {
        state->known = sj_known_codes_new();
    }
}

void sj_x86_64_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                      sj_code *code, uint64_t *immediate)
{
    ZydisDecodedInstruction decoded;
    ZydisDecoderContext context;
    decoder_state *state = decoder->state;
    if (state->known != NULL &&
        sj_known_codes_find(state->known, bytes, size, at, code, immediate)) {
        return;
    }
    *code = (sj_code){.at = at, .length = 1, .kind = SJ_CODE_BAD};
    *immediate = 0;
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeInstruction(&state->zydis, &context, bytes, size, &decoded))) {
        return;
    }
    code->length = decoded.length;
    code->kind = SJ_CODE_PLAIN;
    code->flag_effect = sj_x86_64_flag_effect(&decoded) & 15;
    decode_transfer(&decoded, code);
    if ((decoded.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 && decoded.raw.modrm.mod == 0 &&
        decoded.raw.modrm.rm == 5 && (code->flags & SJ_CODE_BRANCH) == 0) {
        code->flags |= SJ_CODE_RELATIVE;
        code->flags |= decoded.mnemonic == ZYDIS_MNEMONIC_LEA ? SJ_CODE_ADDRESS : 0;
        code->value = (int32_t)decoded.raw.disp.value;
        code->field = decoded.raw.disp.offset & 15; /* instructions have at most 15 bytes */
        if (has_prefix(&decoded, PREFIX_ADDRESS_SIZE)) {
            code->kind = SJ_CODE_PINNED; /* relative to eip: the address wraps at 4 GiB */
        }
    }
    if (decoder->keeps_faults && code->kind == SJ_CODE_PLAIN && sj_x86_64_may_fault(&decoded)) {
        code->kind = SJ_CODE_FAULTS;
    }
    if ((code->flags & SJ_CODE_BRANCH) == 0 && decoded.raw.imm[0].size >= 32) {
        *immediate = decoded.raw.imm[0].value.u;
    }
    cache_code(state, bytes, size, &decoded, code);
}
