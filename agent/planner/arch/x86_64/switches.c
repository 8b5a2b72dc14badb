#include "agent/planner/arch/x86_64/x86_64.h"

enum { SWITCH_LOOK_BACK = 12, ENDBR_BYTES = 4, NO_REGISTER = 0xff, LONG_JUMP_IF_BYTES = 6 };

uint32_t sj_x86_64_entry(const sj_module *module, const sj_code_range *range)
{
    static const uint8_t endbr64[ENDBR_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};
    const bool has_mark = range->size >= ENDBR_BYTES &&
                          memcmp(module->text + range->start, endbr64, sizeof(endbr64)) == 0;
    return range->start + (has_mark ? ENDBR_BYTES : 0);
}

uint8_t sj_x86_64_jump_condition(const sj_module *module, const sj_code *jump)
{
    const uint8_t *end = module->text + sj_code_end(jump);
    /* The long form ends with 0F 8x and four bytes, the short form with 7x and one byte. */
    const bool is_long = jump->length >= LONG_JUMP_IF_BYTES && end[-LONG_JUMP_IF_BYTES] == 0x0f;
    return is_long ? end[1 - LONG_JUMP_IF_BYTES] & 0x0f : end[-2] & 0x0f;
}

/* Returns the register of `jmp *reg`, or NO_REGISTER for other instructions. */
static uint8_t jump_register(const uint8_t *bytes, uint8_t length)
{
    const uint8_t modrm = bytes[length - 1];
    const bool is_register = length >= 2 && bytes[length - 2] == 0xff && (modrm & 0xc0) == 0xc0;
    const bool is_high = length >= 3 && (bytes[length - 3] & 0xf1) == 0x41;
    return is_register ? (uint8_t)((modrm & 7) + (is_high ? 8 : 0)) : NO_REGISTER;
}

/* True if an instruction loads 64 bits from memory into register `wanted`, except from the stack,
 * where a sum may have been spilled. */
static bool is_load_of(const uint8_t *bytes, uint8_t length, uint8_t wanted)
{
    const uint8_t modrm = bytes[2];
    const uint8_t reg = (uint8_t)((modrm >> 3 & 7) | (bytes[0] & 4) << 1);
    const bool is_stack = (modrm & 7) == 4 && length > 3 && (bytes[3] & 7) == 4;
    return bytes[1] == 0x8b && (modrm & 0xc0) != 0xc0 && !is_stack && reg == wanted;
}

/* Searches backwards from `jmp *reg` for `add other, reg`, and for the `movslq (base,index,4)`
 * before that. A load of the whole register ends the search, because earlier instructions compute
 * another value. */
sj_switch_shape sj_x86_64_find_switch(const sj_module *module, const sj_code_range *range,
                                      const sj_code *jump)
{
    sj_switch_shape shape = {0};
    const uint8_t wanted = jump_register(module->text + jump->at, jump->length);
    const sj_code *first = module->codes + range->first_code;
    uint8_t first_operand = NO_REGISTER;
    uint8_t second_operand = NO_REGISTER;
    for (const sj_code *code = jump; code > first && jump - code < SWITCH_LOOK_BACK;) {
        code--;
        const uint8_t *bytes = module->text + code->at;
        const uint8_t rex = bytes[0];
        if (code->kind != SJ_CODE_PLAIN && code->kind != SJ_CODE_NOP) {
            break;
        }
        if (code->length < 3 || (rex & 0xf8) != 0x48) {
            continue;
        }
        const uint8_t modrm = bytes[2];
        const uint8_t reg = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1);
        const uint8_t rm = (uint8_t)((modrm & 7) | (rex & 1) << 3);
        const bool is_register = (modrm & 0xc0) == 0xc0;
        if (!shape.has_sum && is_load_of(bytes, code->length, wanted)) {
            shape.is_indexed = (modrm & 7) == 4 && bytes[3] >> 6 == 3;
            break;
        }
        if (!shape.has_sum && (bytes[1] == 0x01 || bytes[1] == 0x03)) {
            const uint8_t result = bytes[1] == 0x01 ? rm : reg;
            if (result == wanted && (is_register || bytes[1] == 0x03)) {
                shape.has_sum = true;
                first_operand = is_register ? reg : NO_REGISTER;
                second_operand = is_register ? rm : NO_REGISTER;
            }
        } else if (shape.has_sum && bytes[1] == 0x63 && (modrm & 7) == 4 && code->length >= 4 &&
                   (modrm & 0xc0) != 0xc0) {
            const uint8_t base = (uint8_t)((bytes[3] & 7) | (rex & 1) << 3);
            shape.is_other_base =
                first_operand != NO_REGISTER && base != first_operand && base != second_operand;
            break;
        }
    }
    return shape;
}
