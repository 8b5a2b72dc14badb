/* Derives from the instructions of generated code how they change the stack frame, and whether they
 * may fault. */
#include "agent/planner/arch/x86_64/x86_64.h"

enum { REX_W = 0x48, REX_B = 0x41, LEAVE = 0xc9, GROUP_BYTE = 0x83, GROUP_WORD = 0x81 };

sj_frame_step sj_x86_64_frame_step(const uint8_t *bytes, uint32_t length)
{
    const bool has_prefix = length > 1 && bytes[0] == REX_B;
    const uint8_t first = has_prefix ? bytes[1] : bytes[0];
    const bool is_single = length == (has_prefix ? 2U : 1U);
    if (is_single && first >= 0x50 && first <= 0x57) {
        return SJ_FRAME_MADE; /* push */
    }
    if (is_single && ((first >= 0x58 && first <= 0x5f) || bytes[0] == LEAVE)) {
        return SJ_FRAME_REMOVED; /* pop */
    }
    if (length < 4 || bytes[0] != REX_W) {
        return SJ_FRAME_KEPT;
    }
    if (bytes[1] == GROUP_BYTE || bytes[1] == GROUP_WORD) {
        return bytes[2] == 0xec   ? SJ_FRAME_MADE    /* sub $n, %rsp */
               : bytes[2] == 0xc4 ? SJ_FRAME_REMOVED /* add $n, %rsp */
                                  : SJ_FRAME_KEPT;
    }
    /* mov n(%rbp), %rsp; mov n(%rsp), %rsp */
    const bool loads_stack = bytes[1] == 0x8b && (bytes[2] == 0x65 || bytes[2] == 0xa5 ||
                                                  ((bytes[2] & 0x3f) == 0x24 && bytes[3] == 0x24));
    return loads_stack ? SJ_FRAME_RESTORED : SJ_FRAME_KEPT;
}

/* True for instructions that access memory without a ModRM byte. */
static bool is_string_or_absolute(const ZydisDecodedInstruction *decoded)
{
    const uint8_t opcode = decoded->opcode;
    return decoded->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
           ((opcode >= 0xa0 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf) ||
            opcode == 0xd7);
}

bool sj_x86_64_may_fault(const ZydisDecodedInstruction *decoded)
{
    enum { STACK = 4, FRAME = 5 };
    if (decoded->mnemonic == ZYDIS_MNEMONIC_DIV || decoded->mnemonic == ZYDIS_MNEMONIC_IDIV ||
        is_string_or_absolute(decoded)) {
        return true;
    }
    if ((decoded->attributes & ZYDIS_ATTRIB_HAS_MODRM) == 0 || decoded->raw.modrm.mod == 3 ||
        decoded->mnemonic == ZYDIS_MNEMONIC_LEA || decoded->mnemonic == ZYDIS_MNEMONIC_NOP) {
        return false;
    }
    const bool is_indexed = decoded->raw.modrm.rm == STACK;
    const uint8_t base = is_indexed ? decoded->raw.sib.base : decoded->raw.modrm.rm;
    const bool is_plain = !is_indexed || decoded->raw.sib.index == STACK;
    if (base == FRAME && decoded->raw.modrm.mod == 0) {
        return is_indexed; /* rip-relative: reads the function's own constants */
    }
    return decoded->raw.rex.B != 0 || (base != STACK && base != FRAME) || !is_plain ||
           decoded->raw.rex.X != 0;
}
