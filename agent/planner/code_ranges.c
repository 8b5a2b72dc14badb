#include "agent/planner/module.h"

#include "proto/base/array.h"

#include <stdlib.h>

/* Design notes. Ranges of symbols are added first, because they have names. Then every unwind range
 * without a symbol is added without a name, so a module with only .dynsym is planned completely.
 * The planner trusts the bounds of a symbol only if an unwind range starts at the same byte and is
 * at least as long. Code without an unwind range is hand-written or generated, so the planner
 * cannot know which of its jumps end a call. */

static bool is_in_section(const sj_module *module, uint64_t address, const char *prefix)
{
    for (uint32_t i = 0; i < module->elf.section_count; i++) {
        const sj_elf_section *section = &module->elf.sections[i];
        if (address >= section->address && address - section->address < section->size &&
            section->address != 0 && strncmp(section->name, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

static sj_status add_range(sj_module *module, const sj_code_range *range)
{
    SJ_TRY(sj_array_reserve(&module->ranges, &module->range_capacity, module->range_count, 1,
                            sizeof(*range)));
    module->ranges[module->range_count++] = *range;
    return SJ_OK;
}

static bool is_inside_text(const sj_module *module, uint64_t address, uint64_t size)
{
    return address >= module->text_low && address - module->text_low < module->text_bytes &&
           size <= module->text_bytes - (address - module->text_low);
}

/* Adds the range of a symbol. Excludes the range if its bounds are not certain. */
static sj_status add_symbol_range(sj_module *module, const sj_symbol *symbol)
{
    const sj_fde *fde = sj_eh_frame_find(&module->unwind, symbol->address);
    const bool is_fde_start = fde != NULL && fde->start == symbol->address;
    if (symbol->kind == SJ_SYMBOL_LABEL && !is_fde_start) {
        return SJ_OK;
    }
    uint64_t size = symbol->size;
    if (size == 0 && is_fde_start) {
        size = fde->end - fde->start;
    }
    /* A function without a size and an unwind range becomes a range of 0 bytes, so that the plan
     * lists it. */
    if ((size == 0 && fde != NULL) || !is_inside_text(module, symbol->address, 0) ||
        is_in_section(module, symbol->address, ".plt")) {
        return SJ_OK;
    }
    sj_code_range range = {.start = (uint32_t)(symbol->address - module->text_low),
                           .name = symbol->name,
                           .source = symbol->source,
                           .receiver = symbol->receiver};
    if (!is_inside_text(module, symbol->address, size)) {
        /* The symbol's size is wrong, so it must not cut the ranges after it. */
        size = is_fde_start ? fde->end - fde->start : 0;
        size = is_inside_text(module, symbol->address, size) ? size : 0;
        range.skip = SJ_SKIP_OUT_OF_TEXT;
    } else if (symbol->kind == SJ_SYMBOL_RESOLVER || sj_name_is_runtime(symbol->name)) {
        range.skip = SJ_SKIP_RUNTIME_SUPPORT;
    } else if (!is_fde_start || fde->end - fde->start < size) {
        range.skip = SJ_SKIP_NO_CFI;
    }
    range.size = (uint32_t)size;
    return add_range(module, &range);
}

/* Adds a range for each unwind range that starts outside of the sorted ranges of symbols. */
static sj_status add_fde_ranges(sj_module *module)
{
    const size_t named_count = module->range_count;
    size_t named = 0;
    uint64_t covered = 0;
    for (size_t i = 0; i < module->unwind.count; i++) {
        const sj_fde *fde = &module->unwind.ranges[i];
        if (!is_inside_text(module, fde->start, fde->end - fde->start)) {
            continue;
        }
        const uint64_t start = fde->start - module->text_low;
        while (named < named_count && module->ranges[named].start <= start) {
            const uint64_t end = (uint64_t)module->ranges[named].start + module->ranges[named].size;
            covered = end > covered ? end : covered;
            named++;
        }
        if (start < covered || is_in_section(module, fde->start, ".plt")) {
            continue;
        }
        const sj_code_range range = {.start = (uint32_t)start,
                                     .size = (uint32_t)(fde->end - fde->start),
                                     .name = "",
                                     .source = SJ_SYMBOL_EH_FRAME};
        covered = start + range.size;
        SJ_TRY(add_range(module, &range));
    }
    return SJ_OK;
}

static int compare_ranges(const void *left, const void *right)
{
    const sj_code_range *a = left;
    const sj_code_range *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

/* Excludes ranges that overlap, because it is unknown to which of them the bytes belong. Shortens
 * them, so that each byte belongs to at most one range. */
static void mark_overlaps(sj_module *module)
{
    uint32_t open = 0;
    for (uint32_t i = 1; i < module->range_count; i++) {
        sj_code_range *last = &module->ranges[open];
        sj_code_range *range = &module->ranges[i];
        if (last->start + last->size > range->start) {
            last->skip = SJ_SKIP_OVERLAP;
            range->skip = SJ_SKIP_OVERLAP;
        }
        if (range->start + range->size >= last->start + last->size) {
            open = i;
        }
    }
    for (uint32_t i = 0; i + 1 < module->range_count; i++) {
        sj_code_range *range = &module->ranges[i];
        const uint32_t next = module->ranges[i + 1].start;
        if (range->start + range->size > next) {
            range->size = next - range->start;
        }
    }
}

/* Excludes start files and Go code, and finds the cold parts among the ranges. */
static void mark_special(sj_module *module)
{
    for (uint32_t i = 0; i < module->range_count; i++) {
        sj_code_range *range = &module->ranges[i];
        const uint64_t address = sj_module_address(module, range->start);
        range->parent = i;
        range->next_part = SJ_CODE_RANGE_NONE;
        if (module->is_go) {
            range->skip = SJ_SKIP_GO_RUNTIME;
        } else if (address == module->elf.entry) {
            range->skip = SJ_SKIP_RUNTIME_SUPPORT;
        }
        const sj_fde *fde = sj_eh_frame_find(&module->unwind, address);
        range->frame = fde;
        if (fde != NULL && fde->start == address) {
            range->is_cold = !module->unwind.rows[fde->first_row].is_entry;
        }
        range->is_cold = range->is_cold || sj_name_part(range->name) != NULL;
    }
    static const char *const start_sections[] = {".init", ".fini"};
    for (unsigned s = 0; s < 2; s++) {
        const sj_elf_section *section = sj_elf_find_section(&module->elf, start_sections[s]);
        if (section != NULL && is_inside_text(module, section->address, section->size)) {
            const uint32_t low = (uint32_t)(section->address - module->text_low);
            const uint32_t range = sj_module_range_at(module, low);
            if (range != SJ_CODE_RANGE_NONE) {
                module->ranges[range].skip = SJ_SKIP_RUNTIME_SUPPORT;
            }
        }
    }
}

sj_status sj_module_find_ranges(sj_module *module)
{
    for (size_t i = 0; i < module->symbols.count; i++) {
        SJ_TRY(add_symbol_range(module, &module->symbols.items[i]));
    }
    SJ_TRY(add_fde_ranges(module));
    if (module->range_count > 0) {
        qsort(module->ranges, module->range_count, sizeof(*module->ranges), compare_ranges);
    }
    mark_overlaps(module);
    SJ_TRY(sj_module_index_ranges(module));
    mark_special(module);
    sj_module_skip_notifiers(module);
    return SJ_OK;
}
