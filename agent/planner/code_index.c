#include "agent/planner/exits.h"

#include <stdlib.h>

enum { BLOCK_SHIFT = 6 }; /* module->ranges_before has one element for each 64 bytes of text */

sj_status sj_module_index_ranges(sj_module *module)
{
    const uint32_t blocks = (module->text_bytes >> BLOCK_SHIFT) + 1;
    module->ranges_before = malloc(blocks * sizeof(*module->ranges_before));
    if (module->ranges_before == NULL) {
        return SJ_ENOMEM;
    }
    uint32_t count = 0;
    for (uint32_t block = 0; block < blocks; block++) {
        while (count < module->range_count && module->ranges[count].start < (uint64_t)block
                                                                                << BLOCK_SHIFT) {
            count++;
        }
        module->ranges_before[block] = count;
    }
    return SJ_OK;
}

uint32_t sj_module_ranges_before(const sj_module *module, int64_t offset)
{
    if (offset < 0 || module->range_count == 0) {
        return 0;
    }
    const int64_t last = module->text_bytes;
    const uint32_t block = (uint32_t)((offset < last ? offset : last) >> BLOCK_SHIFT);
    uint32_t count = module->ranges_before[block];
    while (count < module->range_count && (int64_t)module->ranges[count].start <= offset) {
        count++;
    }
    return count;
}

uint32_t sj_module_range_at(const sj_module *module, int64_t offset)
{
    const uint32_t count = sj_module_ranges_before(module, offset);
    if (count == 0) {
        return SJ_CODE_RANGE_NONE;
    }
    const sj_code_range *range = &module->ranges[count - 1];
    return offset < (int64_t)range->start + range->size ? count - 1 : SJ_CODE_RANGE_NONE;
}

const sj_code *sj_any_code_at(const sj_module *module, int64_t offset)
{
    if (!sj_module_holds(module, offset) || !sj_bit_get(module->code_starts, (uint32_t)offset)) {
        return NULL;
    }
    const uint32_t word = (uint32_t)offset >> 6;
    const uint64_t before = module->code_starts[word] & ((UINT64_C(1) << (offset & 63)) - 1);
    return &module->codes[module->first_codes[word] + (uint32_t)__builtin_popcountll(before)];
}

const sj_code *sj_code_at(const sj_module *module, int64_t offset)
{
    const sj_code *code = sj_any_code_at(module, offset);
    return code != NULL && (code->flags & SJ_CODE_UNOWNED) == 0 ? code : NULL;
}
