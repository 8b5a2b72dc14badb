#include "agent/planner/arch/aarch64/aarch64.h"

#include "agent/abi/aarch64_words.h"
#include "agent/planner/jump_tables.h"

/* Design notes. A switch ends in `br` to the sum of a base and an entry of a table:
 *
 *   cmp w0, #count-1; b.hi default
 *   ldrb w1, [table, w0, uxtw]      (or ldrh, ldr, ldrsw, ...)
 *   adr x2, base                    (or the table itself)
 *   add x1, x2, w1, sxtb #2         (or x1, lsl #2)
 *   br x1
 *
 * A patch covers one instruction, so the planner needs to know only that no entry of a table leads
 * to the function's entry. If the table was found and read, a jump to a sum stays in the
 * function. */

enum { LOOK_BACK = 16, ADDRESS_LOOK_BACK = 512, ENTRIES_UNBOUNDED = 256, REGISTERS = 32 };

static uint32_t word_of(const sj_module *module, const sj_code *code)
{
    return code->length == SJ_WORD_BYTES ? sj_word_read(module->text + code->at) : 0;
}

static bool is_sum(uint32_t word)
{
    /* add x, x, register: with lsl, or extended */
    return (word & UINT32_C(0xffe00000)) == UINT32_C(0x8b000000) ||
           (word & UINT32_C(0xffe00000)) == UINT32_C(0x8b200000);
}

/* True if an instruction writes register `reg` as its destination in the lowest bits. */
static bool writes_register(uint32_t word, uint32_t reg)
{
    const bool is_memory = (word & UINT32_C(0x0a000000)) == UINT32_C(0x08000000);
    const bool is_store = is_memory && (word >> 22 & 3) == 0;
    const bool is_pair_store = (word & UINT32_C(0x3a400000)) == UINT32_C(0x28000000);
    const bool is_vector = (is_memory && (word >> 26 & 1) != 0) ||
                           (word & UINT32_C(0x0e000000)) == UINT32_C(0x0e000000);
    return (word & 31) == reg && !is_store && !is_pair_store && !is_vector;
}

/* Returns the last instruction before `from` that writes a register. Returns NULL if a call or
 * `limit` instructions precede, or if there is none. */
static const sj_code *find_writer(const sj_module *module, const sj_code_range *range,
                                  const sj_code *from, uint32_t reg, uint32_t limit)
{
    const sj_code *first = module->codes + range->first_code;
    for (const sj_code *code = from; code > first && (uint32_t)(from - code) < limit;) {
        code--;
        if ((code->kind == SJ_CODE_PLAIN) && writes_register(word_of(module, code), reg)) {
            return code;
        }
        if (code->kind == SJ_CODE_CALL || code->kind == SJ_CODE_CALL_INDIRECT) {
            return NULL;
        }
    }
    return NULL;
}

sj_switch_shape sj_aarch64_find_switch(const sj_module *module, const sj_code_range *range,
                                       const sj_code *jump)
{
    const uint32_t reg = word_of(module, jump) >> 5 & (REGISTERS - 1);
    const sj_code *writer = find_writer(module, range, jump, reg, LOOK_BACK);
    return (sj_switch_shape){.has_sum = writer != NULL && is_sum(word_of(module, writer))};
}

/* Finds the address that adr, or adrp and add, computed in a register. These instructions may be
 * far away, before a loop. Returns false if it finds none. */
static bool find_address(const sj_module *module, const sj_code_range *range, const sj_code *from,
                         uint32_t reg, uint64_t *address)
{
    const sj_code *first = module->codes + range->first_code;
    uint64_t offset = 0;
    for (const sj_code *code = from; code > first && from - code < ADDRESS_LOOK_BACK;) {
        code--;
        const uint32_t word = word_of(module, code);
        if ((word & 31) != reg || code->kind != SJ_CODE_PLAIN) {
            continue;
        }
        if ((code->flags & SJ_CODE_RELATIVE) != 0 && sj_word_class_of(word) != SJ_WORD_LITERAL) {
            *address = sj_module_address(module, sj_code_target(code)) + offset;
            return true;
        }
        if ((word & UINT32_C(0xffc00000)) == UINT32_C(0x91000000)) { /* add x, x, #n */
            offset += word >> 10 & 0xfff;
            reg = word >> 5 & 31;
        }
    }
    return false;
}

/* Reads from a load with a register offset the size of an entry and whether it is signed. Returns
 * false for other instructions. */
static bool read_load(uint32_t word, sj_jump_table *table)
{
    if ((word & UINT32_C(0x3f200c00)) != UINT32_C(0x38200800) || (word >> 22 & 3) == 0) {
        return false;
    }
    table->entry_bytes = (uint8_t)(1U << (word >> 30));
    table->is_signed = (word >> 22 & 3) != 1;
    return table->entry_bytes <= sizeof(uint32_t);
}

/* Reads from an add the shift of an entry, and whether the add extends its sign. */
static void read_sum(uint32_t word, sj_jump_table *table)
{
    const bool is_extended = (word >> 21 & 1) != 0;
    table->shift = (uint8_t)(is_extended ? word >> 10 & 7 : word >> 10 & 63);
    table->is_signed = table->is_signed || (is_extended && (word >> 13 & 7) >= 4);
}

/* Returns the number of entries by the comparison of the index, if it is nearby; else
 * ENTRIES_UNBOUNDED. */
static uint32_t find_count(const sj_module *module, const sj_code_range *range, const sj_code *from)
{
    const sj_code *first = module->codes + range->first_code;
    for (const sj_code *code = from; code > first && from - code < LOOK_BACK;) {
        code--;
        const uint32_t word = word_of(module, code);
        if ((word & UINT32_C(0x7fc0001f)) == UINT32_C(0x7100001f)) { /* cmp r, #n */
            return (word >> 10 & 0xfff) + 1;
        }
    }
    return ENTRIES_UNBOUNDED;
}

/* Finds the table of the switch that ends with `jump`. Returns false if there is none. */
static bool find_table(const sj_module *module, const sj_code_range *range, const sj_code *jump,
                       sj_jump_table *table)
{
    const uint32_t reg = word_of(module, jump) >> 5 & (REGISTERS - 1);
    const sj_code *sum = find_writer(module, range, jump, reg, LOOK_BACK);
    if (sum == NULL || !is_sum(word_of(module, sum))) {
        return false;
    }
    const uint32_t sum_word = word_of(module, sum);
    const sj_code *load = find_writer(module, range, sum, sum_word >> 16 & 31, LOOK_BACK);
    *table = (sj_jump_table){.range = (uint32_t)(range - module->ranges)};
    if (load == NULL || !read_load(word_of(module, load), table)) {
        return false;
    }
    read_sum(sum_word, table);
    table->most_count = find_count(module, range, load);
    return table->shift <= 3 &&
           find_address(module, range, load, word_of(module, load) >> 5 & 31, &table->address) &&
           find_address(module, range, sum, sum_word >> 5 & 31, &table->base);
}

sj_status sj_aarch64_find_tables(const sj_module *module, uint32_t range_index,
                                 sj_jump_tables *tables)
{
    const sj_code_range *range = &module->ranges[range_index];
    for (uint32_t i = 0; i < range->code_count; i++) {
        const sj_code *code = &module->codes[range->first_code + i];
        sj_jump_table table;
        if (code->kind == SJ_CODE_JUMP_INDIRECT && find_table(module, range, code, &table)) {
            SJ_TRY(sj_jump_tables_add(tables, &table));
        }
    }
    return SJ_OK;
}
