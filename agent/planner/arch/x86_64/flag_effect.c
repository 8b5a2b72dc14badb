#include "agent/planner/arch/x86_64/x86_64.h"

/* Design notes. This file lists the instructions that occur at entries, before exits and after
 * calls. Other instructions have the effect SJ_EFFECT_UNKNOWN. Source: Intel SDM volume 1, appendix
 * A.
 *
 * A flag that the SDM calls undefined counts as not written, because a processor may keep its
 * value. On AMD's processors, a multiplication writes only carry and overflow, and tzcnt keeps
 * overflow. The adjust flag is ignored, because no condition reads it. */

/* True for x87 instructions except the conditional moves (FCMOVcc, opcodes DA and DB), which read
 * the status flags. */
static bool is_x87(const ZydisDecodedInstruction *decoded)
{
    enum { X87_FIRST = 0xd8, X87_LAST = 0xdf, MOVES_IF = 0xda, MOVES_IF_NOT = 0xdb, REGISTERS = 3 };
    const uint8_t opcode = decoded->opcode;
    const bool may_move = (opcode == MOVES_IF || opcode == MOVES_IF_NOT) &&
                          decoded->raw.modrm.mod == REGISTERS && decoded->raw.modrm.reg < 4;
    return opcode >= X87_FIRST && opcode <= X87_LAST && !may_move;
}

/* True for vector and x87 instructions that do not read the status flags. Those that write flags
 * count as writing none, unless sj_x86_64_flag_effect lists them, as it lists ucomisd. */
static bool is_of_vectors(const ZydisDecodedInstruction *decoded)
{
    enum { GENERAL_AGAIN = 0xf0 }; /* 0F 38 F0 to FF: general instructions such as movbe and adcx */
    const uint8_t opcode = decoded->opcode;
    if (decoded->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) {
        return true; /* VEX, EVEX and other vector encodings */
    }
    switch (decoded->opcode_map) {
    case ZYDIS_OPCODE_MAP_DEFAULT:
        return is_x87(decoded);
    case ZYDIS_OPCODE_MAP_0F:
        return (opcode >= 0x10 && opcode <= 0x17) || (opcode >= 0x28 && opcode <= 0x2d) ||
               (opcode >= 0x50 && opcode <= 0x7f) || opcode == 0xc2 ||
               (opcode >= 0xc4 && opcode <= 0xc6) || opcode >= 0xd0;
    case ZYDIS_OPCODE_MAP_0F38:
        return opcode < GENERAL_AGAIN;
    case ZYDIS_OPCODE_MAP_0F3A:
        return true;
    default:
        return false;
    }
}

/* Returns the effect of sar, shl or shr. A shift by more than one bit leaves the overflow flag
 * undefined. A shift by zero writes no flag, so a shift by %cl counts as writing none. */
static uint8_t effect_of_shift(const ZydisDecodedInstruction *decoded)
{
    enum { SHIFT8 = 0xc0, SHIFT = 0xc1, SHIFT8_BY_1 = 0xd0, SHIFT_BY_1 = 0xd1 };
    const uint8_t count_mask = decoded->raw.rex.W != 0 ? 0x3f : 0x1f;
    if (decoded->opcode == SHIFT8_BY_1 || decoded->opcode == SHIFT_BY_1) {
        return SJ_EFFECT_WRITES_ALL;
    }
    return (decoded->opcode == SHIFT8 || decoded->opcode == SHIFT) &&
                   (decoded->raw.imm[0].value.u & count_mask) != 0
               ? SJ_EFFECT_KEEPS_OVERFLOW
               : SJ_EFFECT_NONE;
}

/* Returns the flags that a conditional instruction reads. A condition and its negation read the
 * same flags, so the lowest bit of the opcode is ignored. */
static uint8_t effect_of_condition(const ZydisDecodedInstruction *decoded)
{
    static const uint8_t effects[] = {SJ_EFFECT_READS_OVERFLOW,   /* o, no */
                                      SJ_EFFECT_READS_CARRY,      /* b, ae */
                                      SJ_EFFECT_READS_ZERO,       /* e, ne */
                                      SJ_EFFECT_READS_CARRY_ZERO, /* be, a */
                                      SJ_EFFECT_READS_SIGNS,      /* s, ns */
                                      SJ_EFFECT_READS_SIGNS,      /* p, np */
                                      SJ_EFFECT_READS_SIGNS,      /* l, ge */
                                      SJ_EFFECT_READS_ALL_BUT_CARRY /* le, g */};
    return effects[(decoded->opcode & 0x0f) >> 1];
}

/* True for conditional jumps, setcc and cmovcc. */
static bool has_condition(const ZydisDecodedInstruction *decoded)
{
    const uint8_t group = decoded->opcode & 0xf0;
    if (decoded->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) {
        return false;
    }
    return (decoded->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && group == 0x70) ||
           (decoded->opcode_map == ZYDIS_OPCODE_MAP_0F &&
            (group == 0x40 || group == 0x80 || group == 0x90));
}

/* True for instructions that do not read the status flags. Some of them write flags, such as rol
 * and div: they count as writing none. */
static bool leaves_alone(const ZydisDecodedInstruction *decoded)
{
    switch (decoded->mnemonic) {
    case ZYDIS_MNEMONIC_BSWAP:
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_CQO:
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_IDIV:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_LEAVE:
    case ZYDIS_MNEMONIC_LFENCE:
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVBE:
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_NOT:
    case ZYDIS_MNEMONIC_PAUSE:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_PREFETCHNTA:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHT2:
    case ZYDIS_MNEMONIC_PREFETCHW:
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_RDSSPD:
    case ZYDIS_MNEMONIC_RDSSPQ:
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
    case ZYDIS_MNEMONIC_SFENCE:
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ:
    case ZYDIS_MNEMONIC_XCHG:
        return true;
    default:
        return is_of_vectors(decoded);
    }
}

uint8_t sj_x86_64_flag_effect(const ZydisDecodedInstruction *decoded)
{
    switch (decoded->mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_CMPXCHG:
    case ZYDIS_MNEMONIC_COMISD:
    case ZYDIS_MNEMONIC_COMISS:
    case ZYDIS_MNEMONIC_FCOMI:
    case ZYDIS_MNEMONIC_FCOMIP:
    case ZYDIS_MNEMONIC_FUCOMI:
    case ZYDIS_MNEMONIC_FUCOMIP:
    case ZYDIS_MNEMONIC_NEG:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_POPCNT:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_TEST:
    case ZYDIS_MNEMONIC_UCOMISD:
    case ZYDIS_MNEMONIC_UCOMISS:
    case ZYDIS_MNEMONIC_VCOMISD:
    case ZYDIS_MNEMONIC_VCOMISS:
    case ZYDIS_MNEMONIC_VUCOMISD:
    case ZYDIS_MNEMONIC_VUCOMISS:
    case ZYDIS_MNEMONIC_XADD:
    case ZYDIS_MNEMONIC_XOR:
        return SJ_EFFECT_WRITES_ALL;
    case ZYDIS_MNEMONIC_DEC:
    case ZYDIS_MNEMONIC_INC:
        return SJ_EFFECT_KEEPS_CARRY;
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTC:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_CLC:
    case ZYDIS_MNEMONIC_STC:
        return SJ_EFFECT_WRITES_CARRY;
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
        return SJ_EFFECT_WRITES_ZERO;
    case ZYDIS_MNEMONIC_LZCNT:
    case ZYDIS_MNEMONIC_TZCNT:
        return SJ_EFFECT_WRITES_CARRY_ZERO;
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MUL:
        return SJ_EFFECT_WRITES_CARRY_OVERFLOW;
    case ZYDIS_MNEMONIC_ADC:
    case ZYDIS_MNEMONIC_SBB:
        return SJ_EFFECT_CARRIES;
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
        return effect_of_shift(decoded);
    default:
        break;
    }
    if (has_condition(decoded)) {
        return effect_of_condition(decoded);
    }
    return leaves_alone(decoded) ? SJ_EFFECT_NONE : SJ_EFFECT_UNKNOWN;
}
