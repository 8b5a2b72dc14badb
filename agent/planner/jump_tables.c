#include "agent/planner/jump_tables.h"

#include "agent/planner/machine.h"
#include "proto/base/array.h"

#include <elf.h>
#include <stdlib.h>

/* Design notes. A table is found by code that contains its address. It may be the jump table of a
 * switch or an array of functions. The entries of an array of functions lead only to starts of
 * functions. An entry that leads into the middle of a range, or into a cold part, shows that the
 * table belongs to a switch. All entries are checked, because the first ones may lead into a cold
 * part. Without symbols, a cold part looks like a function, but only tables and jumps lead there.
 *
 * A table ends where the next table begins. An entry may lead into a range that is perhaps a cold
 * part. Such an entry belongs to the table in three cases: an entry follows that certainly belongs
 * to the switch, a comparison shows that the table is that long, or the range jumps back into the
 * range whose code contains the table's address. */

typedef enum entry_kind {
    ENTRY_OTHER, /* does not lead into a switch */
    /* Leads into the range whose code contains the table's address, or directly after it, where
     * clang's unreachable cases lead. */
    ENTRY_OWN,
    ENTRY_PART, /* leads into a cold part, or the code of a cold part contains the table's address
                 */
    /* Leads into another range. If the entry belongs to the table, one of the two ranges is a cold
     * part. */
    ENTRY_MAY_PART
} entry_kind;

typedef struct table_entry {
    int64_t target; /* offset in the text */
    uint32_t at;    /* index of the range that holds the target */
    entry_kind kind;
} table_entry;

typedef struct table_reader {
    sj_module *module;
    sj_found_links *found;
    table_entry *entries; /* entries of the current table */
    size_t count;
    size_t capacity;
    size_t switch_capacity;
    bool has_new_parts;
} table_reader;

sj_status sj_jump_tables_add(sj_jump_tables *tables, const sj_jump_table *table)
{
    SJ_TRY(sj_array_reserve(&tables->items, &tables->capacity, tables->count, 1,
                            sizeof(*tables->items)));
    tables->items[tables->count++] = *table;
    return SJ_OK;
}

/* True if the range is known only from unwind tables and no direct call leads to its start. */
static bool has_no_caller(const sj_module *module, const sj_code_range *range)
{
    return range->source == SJ_SYMBOL_EH_FRAME && !sj_bit_get(module->called, range->start);
}

bool sj_may_be_part(const sj_module *module, const sj_code_range *range)
{
    return has_no_caller(module, range) && !sj_bit_get(module->addressed, range->start);
}

/* True if a jump in `from` leads into `range`, but not to its start. */
static bool jumps_into(const sj_module *module, const sj_code_range *from,
                       const sj_code_range *range)
{
    for (uint32_t i = 0; i < from->code_count; i++) {
        const sj_code *code = &module->codes[from->first_code + i];
        const int64_t target = sj_code_target(code);
        if ((code->kind == SJ_CODE_JUMP || code->kind == SJ_CODE_JUMP_IF) &&
            target > range->start && target < (int64_t)range->start + range->size) {
            return true;
        }
    }
    return false;
}

/* True if one of the two ranges may be a cold part of the other. The code of `naming` contains the
 * table's address, and an entry leads into `part`. `is_inside` says that the entry does not lead to
 * the start of `part`. In a program at fixed addresses, the table itself takes the part's address,
 * so a taken address does not count. */
static bool may_be_part_of(const sj_module *module, const sj_code_range *part,
                           const sj_code_range *naming, bool is_inside)
{
    const bool is_fixed = module->elf.type == ET_EXEC;
    return (is_fixed ? has_no_caller(module, part) : sj_may_be_part(module, part)) ||
           (is_inside && sj_may_be_part(module, naming));
}

/* Classifies an entry by its target. If the target's range jumps back into the range `range_index`,
 * marks the target's range as a cold part. */
static table_entry classify_entry(sj_module *module, uint32_t range_index, int64_t target)
{
    const sj_code_range *range = &module->ranges[range_index];
    table_entry entry = {.target = target, .at = sj_module_range_at(module, target)};
    if (target >= range->start && target <= (int64_t)range->start + range->size) {
        entry.kind = ENTRY_OWN;
        entry.at = range_index;
    } else if (entry.at == SJ_CODE_RANGE_NONE) {
        entry.kind = ENTRY_OTHER;
    } else if (range->is_cold || module->ranges[entry.at].is_cold) {
        entry.kind = ENTRY_PART;
    } else {
        sj_code_range *part = &module->ranges[entry.at];
        entry.kind = may_be_part_of(module, part, range, target != part->start) ? ENTRY_MAY_PART
                                                                                : ENTRY_OTHER;
        if (has_no_caller(module, part) && jumps_into(module, part, range)) {
            part->is_cold = true;
            entry.kind = ENTRY_PART;
        }
    }
    return entry;
}

/* Reads the next entry's number, without the shift. */
static int64_t read_entry(sj_reader *reader, const sj_jump_table *table)
{
    switch (table->entry_bytes) {
    case 1: {
        const uint8_t value = sj_read_u8(reader);
        return table->is_signed ? (int8_t)value : value;
    }
    case 2: {
        const uint16_t value = sj_read_u16(reader);
        return table->is_signed ? (int16_t)value : value;
    }
    case 4: {
        const uint32_t value = sj_read_u32(reader);
        return table->is_signed ? (int64_t)(int32_t)value : value;
    }
    default:
        return (int64_t)sj_read_u64(reader);
    }
}

/* Reads the entries of a table into reader->entries. Stops at `end`, the address of the next table,
 * and at the first entry that cannot belong to the table. Then removes the last entries if it is
 * uncertain that they belong to the table. */
static sj_status read_entries(table_reader *reader, const sj_jump_table *table, uint64_t end)
{
    sj_module *module = reader->module;
    sj_slice bytes = sj_elf_at(&module->elf, table->address);
    bytes.size = end - table->address < bytes.size ? (size_t)(end - table->address) : bytes.size;
    sj_reader words = sj_reader_of(bytes.data, bytes.size);
    size_t used = 0;
    reader->count = 0;
    for (uint32_t i = 0; i < table->most_count; i++) {
        const uint64_t value = (uint64_t)read_entry(&words, table) << table->shift;
        const int64_t target = (int64_t)(table->base + value - module->text_low);
        if (words.bad) {
            break;
        }
        const table_entry entry = classify_entry(module, table->range, target);
        if (entry.kind == ENTRY_OTHER && i >= table->known_count) {
            break;
        }
        SJ_TRY(sj_array_reserve(&reader->entries, &reader->capacity, reader->count, 1,
                                sizeof(*reader->entries)));
        reader->entries[reader->count++] = entry;
        if (entry.kind != ENTRY_MAY_PART || i < table->known_count) {
            used = reader->count;
        }
    }
    reader->count = used;
    return SJ_OK;
}

/* True if the entries show that the table belongs to a switch of `range`. */
static bool is_switch(const sj_module *module, const table_entry *entries, size_t count,
                      const sj_code_range *range)
{
    bool is_found = false;
    for (size_t i = 0; i < count && !is_found; i++) {
        const table_entry *entry = &entries[i];
        const bool is_own = entry->kind == ENTRY_OWN && entry->target > range->start &&
                            entry->target < (int64_t)range->start + range->size;
        is_found =
            is_own || entry->kind == ENTRY_PART ||
            (entry->kind == ENTRY_MAY_PART && entry->target != module->ranges[entry->at].start);
    }
    return is_found;
}

/* Marks the target of a switch, and links its range with the range of the switch. */
static sj_status add_entry(table_reader *reader, uint32_t range_index, const table_entry *entry)
{
    sj_module *module = reader->module;
    sj_mark(module, entry->target, false);
    if (sj_module_holds(module, entry->target)) {
        sj_bit_mark(module->table_entries, (uint32_t)entry->target);
    }
    sj_code_range *to = &module->ranges[entry->at];
    to->is_arm |= entry->target == to->start || entry->target == (int64_t)to->entry;
    if (entry->at == range_index) {
        return SJ_OK;
    }
    if (entry->kind == ENTRY_MAY_PART) {
        sj_code_range *range = &module->ranges[range_index];
        (sj_may_be_part(module, range) ? range : to)->is_cold = true;
        reader->has_new_parts = true;
    }
    return sj_links_add(&reader->found->weak, range_index, entry->at);
}

/* Reads a table. If it belongs to a switch, marks its targets and links their ranges. */
static sj_status read_table(table_reader *reader, const sj_jump_table *table, uint64_t end)
{
    sj_module *module = reader->module;
    sj_code_range *range = &module->ranges[table->range];
    SJ_TRY(read_entries(reader, table, end));
    if (!is_switch(module, reader->entries, reader->count, range)) {
        return SJ_OK;
    }
    for (size_t i = 0; i < reader->count; i++) {
        if (reader->entries[i].kind != ENTRY_OTHER) {
            SJ_TRY(add_entry(reader, table->range, &reader->entries[i]));
        }
    }
    range->has_table = true;
    if (table->base == 0) {
        SJ_TRY(sj_array_reserve(&module->switch_tables, &reader->switch_capacity,
                                module->switch_count, 1, sizeof(*module->switch_tables)));
        module->switch_tables[module->switch_count++] = table->address;
    }
    return SJ_OK;
}

static int compare_tables(const void *left, const void *right)
{
    const sj_jump_table *a = left;
    const sj_jump_table *b = right;
    if (a->address != b->address) {
        return a->address > b->address ? 1 : -1;
    }
    return (a->range > b->range) - (a->range < b->range);
}

/* Reads all tables. Repeats this until it finds no new cold part, because a new part may change the
 * classification of earlier entries. */
static sj_status read_tables(table_reader *reader, const sj_jump_tables *tables)
{
    do {
        reader->has_new_parts = false;
        reader->module->switch_count = 0;
        reader->found->weak.count = 0;
        for (size_t i = 0; i < tables->count; i++) {
            const sj_jump_table *table = &tables->items[i];
            size_t next = i + 1;
            while (next < tables->count && tables->items[next].address == table->address) {
                next++;
            }
            const uint64_t end = next < tables->count ? tables->items[next].address : UINT64_MAX;
            SJ_TRY(read_table(reader, table, end));
        }
    } while (reader->has_new_parts);
    return SJ_OK;
}

sj_status sj_read_jump_tables(sj_module *module, sj_found_links *found)
{
    sj_jump_tables tables = {0};
    table_reader reader = {.module = module, .found = found};
    sj_status status = SJ_OK;
    for (uint32_t i = 0; i < module->range_count && status == SJ_OK; i++) {
        if (module->ranges[i].has_indirect) {
            status = module->machine->find_tables(module, i, &tables);
        }
    }
    if (tables.count > 0 && status == SJ_OK) {
        qsort(tables.items, tables.count, sizeof(*tables.items), compare_tables);
        status = read_tables(&reader, &tables);
    }
    free(tables.items);
    free(reader.entries);
    return status;
}

static int compare_addresses(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

bool sj_is_switch_table(const sj_module *module, uint64_t address)
{
    return module->switch_count > 0 &&
           bsearch(&address, module->switch_tables, module->switch_count, sizeof(address),
                   compare_addresses) != NULL;
}
