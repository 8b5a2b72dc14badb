#include "agent/planner/arch/x86_64/x86_64.h"

#include "proto/base/array.h"

#include <stdlib.h>

/* Design notes. Position-independent tables hold 32-bit distances from their own start, and code
 * names the start with a rip-relative lea; every such lea of a function with an indirect jump is a
 * candidate. Entries are read while they lead into the function or to a cold part, and until the
 * next candidate. Reading too far only marks more targets. The function's end itself counts as
 * inside: clang sends unreachable cases there. Fixed programs use tables of 64-bit addresses that
 * the jump names. */

enum { BASES_MAX_COUNT = 8192 };

static bool leads_inside(const sj_module *module, const sj_code_range *range, int64_t target,
                         uint32_t *part)
{
    *part = SJ_CODE_RANGE_NONE;
    if (target >= range->start && target <= (int64_t)range->start + range->size) {
        return true;
    }
    *part = sj_module_range_at(module, target);
    return *part != SJ_CODE_RANGE_NONE && (range->is_cold || module->ranges[*part].is_cold);
}

static sj_status record_entry(sj_module *module, uint32_t range, int64_t target, uint32_t part,
                              sj_links *links)
{
    sj_mark(module, target, false);
    if (sj_module_holds(module, target)) {
        sj_bit_mark(module->table_entries, (uint32_t)target);
    }
    return part != SJ_CODE_RANGE_NONE ? sj_links_add(links, range, part) : SJ_OK;
}

static sj_status read_relative_table(sj_module *module, uint32_t range_index, uint64_t base,
                                     uint64_t limit, sj_links *links)
{
    sj_code_range *range = &module->ranges[range_index];
    sj_slice bytes = sj_elf_at(&module->elf, base);
    if (limit - base < bytes.size) {
        bytes.size = (size_t)(limit - base);
    }
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    unsigned count = 0;
    while (sj_reader_left(&reader) >= sizeof(int32_t)) {
        const int32_t distance = (int32_t)sj_read_u32(&reader);
        const int64_t target = (int64_t)(base - module->text_low) + distance;
        uint32_t part;
        if (!leads_inside(module, range, target, &part)) {
            break;
        }
        SJ_TRY(record_entry(module, range_index, target, part, links));
        count++;
    }
    range->table_count += count > 0 ? 1 : 0;
    return SJ_OK;
}

static sj_status read_absolute_table(sj_module *module, uint32_t range_index, uint64_t base,
                                     sj_links *links)
{
    sj_code_range *range = &module->ranges[range_index];
    const sj_slice bytes = sj_elf_at(&module->elf, base);
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    unsigned count = 0;
    while (sj_reader_left(&reader) >= sizeof(uint64_t)) {
        const int64_t target = (int64_t)(sj_read_u64(&reader) - module->text_low);
        uint32_t part;
        if (!leads_inside(module, range, target, &part) ||
            target == (int64_t)range->start + range->size) {
            break;
        }
        SJ_TRY(record_entry(module, range_index, target, part, links));
        count++;
    }
    range->table_count += count > 0 ? 1 : 0;
    return SJ_OK;
}

static int compare_addresses(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

sj_status sj_x86_64_read_tables(sj_module *module, uint32_t range_index, sj_links *links)
{
    const sj_code_range *range = &module->ranges[range_index];
    uint64_t *bases = NULL;
    size_t capacity = 0;
    size_t count = 0;
    sj_status status = SJ_OK;
    for (uint32_t i = 0; i < range->code_count && status == SJ_OK; i++) {
        const sj_code *code = &module->codes[range->first_code + i];
        if ((code->flags & SJ_CODE_TABLE) != 0 && code->kind == SJ_CODE_JUMP_INDIRECT) {
            status =
                read_absolute_table(module, range_index, (uint64_t)(int64_t)code->value, links);
        } else if ((code->flags & SJ_CODE_ADDRESS) != 0 && count < BASES_MAX_COUNT &&
                   !sj_module_holds(module, sj_code_target(code))) {
            status = sj_array_reserve(&bases, &capacity, count, 1, sizeof(*bases));
            if (status == SJ_OK) {
                bases[count++] = sj_module_address(module, sj_code_target(code));
            }
        }
    }
    if (count > 0) {
        qsort(bases, count, sizeof(*bases), compare_addresses);
    }
    for (size_t i = 0; i < count && status == SJ_OK; i++) {
        const uint64_t limit = i + 1 < count ? bases[i + 1] : UINT64_MAX;
        if (bases[i] != limit && (bases[i] & 3) == 0) {
            status = read_relative_table(module, range_index, bases[i], limit, links);
        }
    }
    free(bases);
    return status;
}
