#include "agent/planner/decode.h"

#include "agent/planner/machine.h"

#include <string.h>

enum { PREFIX_OPERAND_SIZE = 0x66, PREFIX_ADDRESS_SIZE = 0x67 };

sj_status sj_x86_64_open_decoder(sj_decoder *decoder)
{
    /* Both calls only fail for wrong constants. Without operands the decoder is twice as fast. */
    (void)ZydisDecoderInit(&decoder->of.zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    (void)ZydisDecoderEnableMode(&decoder->of.zydis, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
    return SJ_OK;
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
    /* A 16-bit operand size makes branches differ between vendors; rex.W overrides it, which calls
     * of __tls_get_addr use as filler. */
    const bool is_narrow = has_prefix(decoded, PREFIX_OPERAND_SIZE) && decoded->raw.rex.W == 0;
    code->kind = (uint8_t)(is_narrow ? SJ_CODE_BAD : kind);
}

/* FF /2 and FF /4; the far forms (/3 and /5) are pinned. */
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

/* Instructions of vectors and of the x87 neither read the status flags nor write all of them, or do
 * not matter here (ucomisd is named below), but for the conditional moves among the latter. */
static bool is_of_vectors(const ZydisDecodedInstruction *decoded)
{
    enum { X87_FIRST = 0xd8, X87_LAST = 0xdf, X87_MOVES_IF = 0xda, X87_MOVES_IF_NOT = 0xdb };
    const uint8_t opcode = decoded->opcode;
    if (decoded->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) {
        return true; /* VEX, EVEX */
    }
    if (decoded->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) {
        return opcode >= X87_FIRST && opcode <= X87_LAST && opcode != X87_MOVES_IF &&
               opcode != X87_MOVES_IF_NOT;
    }
    return decoded->opcode_map == ZYDIS_OPCODE_MAP_0F &&
           ((opcode >= 0x10 && opcode <= 0x17) || (opcode >= 0x28 && opcode <= 0x2d) ||
            (opcode >= 0x50 && opcode <= 0x7f) || (opcode >= 0xc4 && opcode <= 0xc6) ||
            opcode >= 0xd0);
}

/* A shift by an immediate other than 0; only of more than one bit is its overflow flag undefined.
 */
static bool shifts_for_certain(const ZydisDecodedInstruction *decoded)
{
    enum { SHIFT8 = 0xc0, SHIFT = 0xc1, SHIFT8_BY_1 = 0xd0, SHIFT_BY_1 = 0xd1, COUNT_MASK = 0x1f };
    return ((decoded->opcode == SHIFT8 || decoded->opcode == SHIFT) &&
            (decoded->raw.imm[0].value.u & COUNT_MASK) != 0) ||
           decoded->opcode == SHIFT8_BY_1 || decoded->opcode == SHIFT_BY_1;
}

/* Instructions that code has at heads, in front of exits and behind calls; of others nothing is
 * claimed. Intel SDM volume 1, appendix A. */
static uint8_t effect_of(const ZydisDecodedInstruction *decoded)
{
    switch (decoded->mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_COMISD:
    case ZYDIS_MNEMONIC_COMISS:
    case ZYDIS_MNEMONIC_NEG:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_TEST:
    case ZYDIS_MNEMONIC_UCOMISD:
    case ZYDIS_MNEMONIC_UCOMISS:
    case ZYDIS_MNEMONIC_XOR:
        return SJ_FLAGS_ALL;
    case ZYDIS_MNEMONIC_DEC:
    case ZYDIS_MNEMONIC_INC:
        return SJ_FLAGS_OTHERS;
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTC:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTS:
        return SJ_FLAGS_CARRY;
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
        return shifts_for_certain(decoded) ? SJ_FLAGS_ALL : 0;
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_BSWAP:
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_CQO:
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_IDIV:
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_LEAVE:
    case ZYDIS_MNEMONIC_LZCNT:
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MUL:
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_NOT:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ:
    case ZYDIS_MNEMONIC_TZCNT:
    case ZYDIS_MNEMONIC_XCHG:
        return 0;
    default:
        return is_of_vectors(decoded) ? 0 : SJ_FLAGS_READ;
    }
}

void sj_x86_64_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                      sj_code *code, uint64_t *immediate)
{
    ZydisDecodedInstruction decoded;
    ZydisDecoderContext context;
    *code = (sj_code){.at = at, .length = 1, .kind = SJ_CODE_BAD};
    *immediate = 0;
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeInstruction(&decoder->of.zydis, &context, bytes, size, &decoded))) {
        return;
    }
    code->length = decoded.length;
    code->kind = SJ_CODE_PLAIN;
    code->flag_effect = effect_of(&decoded) & 15;
    decode_transfer(&decoded, code);
    if ((decoded.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 && decoded.raw.modrm.mod == 0 &&
        decoded.raw.modrm.rm == 5 && (code->flags & SJ_CODE_BRANCH) == 0) {
        code->flags |= SJ_CODE_RELATIVE;
        code->flags |= decoded.mnemonic == ZYDIS_MNEMONIC_LEA ? SJ_CODE_ADDRESS : 0;
        code->value = (int32_t)decoded.raw.disp.value;
        code->field = decoded.raw.disp.offset & 15; /* instructions have 15 bytes at most */
        if (has_prefix(&decoded, PREFIX_ADDRESS_SIZE)) {
            code->kind = SJ_CODE_PINNED; /* eip-relative: wraps at 4 GiB */
        }
    }
    if ((code->flags & SJ_CODE_BRANCH) == 0 && decoded.raw.imm[0].size >= 32) {
        *immediate = decoded.raw.imm[0].value.u;
    }
}
