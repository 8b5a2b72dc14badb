/* Checks arbitrary bytes as a plan. The checksum is corrected, so that the other checks are
 * reached. */
#include "agent/abi/plan_crc.h"
#include "agent/planner/planner.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < sizeof(sj_plan_header)) {
        return sj_plan_check(data, size) == SJ_OK ? abort(), 0 : 0;
    }
    sj_plan_header *header = malloc(size);
    memcpy(header, data, size);
    header->file_bytes = (uint32_t)size;
    header->crc32c = sj_plan_crc(header, size);
    if (sj_plan_check(header, size) == SJ_OK) {
        /* A plan that passed the check may be read without further checks. */
        uint64_t sum = 0;
        for (uint32_t i = 0; i < header->function_count; i++) {
            const sj_plan_function *function = &sj_plan_functions(header)[i];
            sum += strlen(sj_plan_string(header, function->name));
            for (uint32_t k = 0; k < function->patch_count; k++) {
                const sj_plan_patch *patch = &sj_plan_patches(header)[function->first_patch + k];
                sum += sj_plan_stubs(header)[patch->stub].operations;
            }
        }
        volatile uint64_t used = sum;
        (void)used;
    }
    free(header);
    return 0;
}
