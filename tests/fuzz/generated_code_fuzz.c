/* Plans patches for arbitrary bytes as generated code. The agent must accept every plan, and no
 * plan may reach outside its function. */
#include "agent/planner/generated.h"

#include <elf.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { PARTS = 3, GAP = 7, MOST = 65536 };
    sj_generated_function functions[PARTS];
    uint64_t address = UINT64_C(0x41000000);
    sj_plan plan;
    if (size < PARTS || size > MOST) {
        return 0;
    }
    for (size_t i = 0; i < PARTS; i++) {
        const size_t low = size * i / PARTS;
        const uint32_t bytes = (uint32_t)(size * (i + 1) / PARTS - low);
        functions[i] = (sj_generated_function){
            .address = address, .size = bytes, .function = (uint32_t)i + 1, .bytes = data + low};
        address += bytes + GAP;
    }
    if (sj_plan_make_generated(EM_X86_64, functions, PARTS, &plan) != SJ_OK) {
        return 0;
    }
    if (sj_plan_check(plan.header, plan.size_bytes) != SJ_OK) {
        abort();
    }
    const sj_plan_patch *patches = sj_plan_patches(plan.header);
    for (uint32_t i = 0; i < plan.header->patch_count; i++) {
        const sj_generated_function *function = &functions[patches[i].function];
        if (patches[i].offset < function->address ||
            patches[i].offset + patches[i].bytes > function->address + function->size) {
            abort();
        }
    }
    sj_plan_free(&plan);
    return 0;
}
