#include "agent/planner/arch/x86_64/x86_64.h"

#include <elf.h>
#include <string.h>

enum { DISTANCE_BYTES = 4, SHORT_BRANCH_BYTES = 3 };

/* True if the value lies in a section or loaded segment of the module. */
static bool is_address(const sj_module *module, uint32_t value)
{
    for (uint32_t i = 0; i < module->elf.section_count; i++) {
        const sj_elf_section *section = &module->elf.sections[i];
        if (section->address != 0 && value >= section->address &&
            value - section->address < section->size) {
            return true;
        }
    }
    for (uint32_t i = 0; i < module->elf.segment_count; i++) {
        const sj_elf_segment *segment = &module->elf.segments[i];
        if (segment->type == PT_LOAD && value >= segment->address &&
            value - segment->address < segment->file_bytes) {
            return true;
        }
    }
    return false;
}

/* Clears all groups of four bytes that may be an address, in an instruction of a program at a fixed
 * address. */
static void mask_fixed(const sj_module *module, const sj_code *code, uint8_t *bytes)
{
    for (uint32_t at = 1; at + DISTANCE_BYTES <= code->length; at++) {
        uint32_t value;
        memcpy(&value, bytes + at, sizeof(value));
        if (value != 0 && is_address(module, value)) {
            memset(bytes + at, 0, DISTANCE_BYTES);
        }
    }
}

void sj_x86_64_mask_addresses(const sj_module *module, const sj_code *code, uint8_t *bytes,
                              uint32_t *pages)
{
    (void)pages;
    if ((code->flags & SJ_CODE_BRANCH) != 0) {
        const uint32_t size = code->length <= SHORT_BRANCH_BYTES ? 1 : DISTANCE_BYTES;
        memset(bytes + code->length - size, 0, size);
    } else if ((code->flags & SJ_CODE_RELATIVE) != 0) {
        memset(bytes + code->field, 0, DISTANCE_BYTES);
    }
    if (module->elf.type == ET_EXEC) {
        mask_fixed(module, code, bytes);
    }
}
