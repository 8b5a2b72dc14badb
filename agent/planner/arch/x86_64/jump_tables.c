#include "agent/planner/arch/x86_64/x86_64.h"

#include "agent/planner/jump_tables.h"

/* Design notes. A position-independent table holds 32-bit distances from its own start. Code loads
 * the start with a rip-relative lea, so each address of such a lea in a function with an indirect
 * jump may be a table. Programs at a fixed address use tables of 64-bit addresses, whose address is
 * in the jump. */

enum { BOUND_LOOK_BACK = 6, NO_REGISTER = 0xff, IF_ABOVE = 7 };

/* The two registers of an instruction whose ModRM byte has mod 3. */
typedef struct register_pair {
    uint8_t reg;
    uint8_t rm;
} register_pair;

static register_pair registers_of(uint8_t rex, uint8_t modrm)
{
    return (register_pair){.reg = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1),
                           .rm = (uint8_t)((modrm & 7) | (rex & 1) << 3)};
}

/* Returns the register from which an instruction copies its value to `index`, by a 32-bit move or a
 * zero extension. Returns NO_REGISTER if it does not. */
static uint8_t copied_from(const uint8_t *bytes, uint8_t length, uint8_t index)
{
    const uint8_t rex = (bytes[0] & 0xf0) == 0x40 ? bytes[0] : 0;
    const uint8_t *opcode = bytes + (rex != 0 ? 1 : 0);
    const uint8_t length_left = (uint8_t)(length - (opcode - bytes));
    if (length_left == 2 && (opcode[0] == 0x89 || opcode[0] == 0x8b) && opcode[1] >= 0xc0) {
        const register_pair pair = registers_of(rex, opcode[1]);
        const uint8_t to = opcode[0] == 0x89 ? pair.rm : pair.reg;
        return to == index ? (opcode[0] == 0x89 ? pair.reg : pair.rm) : NO_REGISTER;
    }
    if (length_left == 3 && opcode[0] == 0x0f && (opcode[1] & 0xfe) == 0xb6 && opcode[2] >= 0xc0) {
        const register_pair pair = registers_of(rex, opcode[2]);
        const bool is_low = opcode[1] == 0xb7 || rex != 0 || pair.rm < 4; /* excludes ah to bh */
        return pair.reg == index && is_low ? pair.rm : NO_REGISTER;
    }
    return NO_REGISTER;
}

/* Returns one more than the number that an instruction compares `index` with. Returns 0 if it does
 * not compare. */
static uint32_t compared_with(const uint8_t *bytes, uint8_t length, uint8_t index)
{
    const bool is_word = bytes[0] == 0x66;
    bytes += is_word ? 1 : 0;
    length = (uint8_t)(length - (is_word ? 1 : 0));
    const uint8_t rex = (bytes[0] & 0xf0) == 0x40 ? bytes[0] : 0;
    const uint8_t *opcode = bytes + (rex != 0 ? 1 : 0);
    const uint8_t length_left = (uint8_t)(length - (opcode - bytes));
    if (length_left == 2 && opcode[0] == 0x3c && index == 0) {
        return opcode[1] + UINT32_C(1);
    }
    if (length_left == 3 && (opcode[0] == 0x83 || opcode[0] == 0x80) &&
        (opcode[1] & 0xf8) == 0xf8) {
        const bool is_low = opcode[0] == 0x83 || rex != 0 || (opcode[1] & 7) < 4;
        return is_low && registers_of(rex, opcode[1]).rm == index && opcode[2] < 0x80
                   ? opcode[2] + UINT32_C(1)
                   : 0;
    }
    const bool is_long = length_left == 6 && opcode[0] == 0x81 && (opcode[1] & 0xf8) == 0xf8 &&
                         registers_of(rex, opcode[1]).rm == index;
    if (!is_long && !(length_left == 5 && opcode[0] == 0x3d && index == 0)) {
        return 0;
    }
    uint32_t value;
    memcpy(&value, opcode + length_left - sizeof(value), sizeof(value));
    return value < SJ_JUMP_TABLE_MOST ? value + 1 : 0;
}

/* Returns the number of entries that a jump through a table of addresses can use, or 0 if it is
 * unknown. It is known if `cmp $last, reg`, `ja elsewhere` and copies of the register directly
 * precede the jump. */
static uint32_t known_count(const sj_module *module, const sj_code_range *range,
                            const sj_code *jump)
{
    const uint8_t *bytes = module->text + jump->at;
    uint8_t rex = 0;
    uint32_t at = 0;
    while (at + 2 < jump->length && bytes[at] != 0xff) {
        rex = (bytes[at] & 0xf0) == 0x40 ? bytes[at] : 0;
        at++;
    }
    uint8_t index = (uint8_t)((bytes[at + 2] >> 3 & 7) | (rex & 2) << 2);
    bool is_bound = false;
    const sj_code *first = module->codes + range->first_code;
    for (const sj_code *code = jump; code > first && jump - code < BOUND_LOOK_BACK;) {
        code--;
        bytes = module->text + code->at;
        const uint8_t from = copied_from(bytes, code->length, index);
        if (code->kind == SJ_CODE_NOP) {
            continue;
        }
        if (code->kind == SJ_CODE_JUMP_IF && !is_bound &&
            sj_x86_64_jump_condition(module, code) == IF_ABOVE) {
            is_bound = true;
        } else if (code->kind == SJ_CODE_PLAIN && from != NO_REGISTER) {
            index = from;
        } else {
            return code->kind == SJ_CODE_PLAIN && is_bound
                       ? compared_with(bytes, code->length, index)
                       : 0;
        }
    }
    return 0;
}

sj_status sj_x86_64_find_tables(const sj_module *module, uint32_t range_index,
                                sj_jump_tables *tables)
{
    const sj_code_range *range = &module->ranges[range_index];
    for (uint32_t i = 0; i < range->code_count; i++) {
        const sj_code *code = &module->codes[range->first_code + i];
        sj_jump_table table = {.range = range_index, .most_count = SJ_JUMP_TABLE_MOST};
        if ((code->flags & SJ_CODE_TABLE) != 0 && code->kind == SJ_CODE_JUMP_INDIRECT) {
            table.address = (uint64_t)(int64_t)code->value;
            table.entry_bytes = sizeof(uint64_t);
            table.known_count = known_count(module, range, code);
            SJ_TRY(sj_jump_tables_add(tables, &table));
        } else if ((code->flags & SJ_CODE_ADDRESS) != 0 &&
                   !sj_module_holds(module, sj_code_target(code))) {
            table.address = sj_module_address(module, sj_code_target(code));
            table.base = table.address;
            table.entry_bytes = sizeof(int32_t);
            table.is_signed = true;
            if ((table.address & 3) == 0) {
                SJ_TRY(sj_jump_tables_add(tables, &table));
            }
        }
    }
    return SJ_OK;
}
