#include "agent/planner/arch/x86_64/x86_64.h"

#include <elf.h>

static bool hook_x86_64(sj_builder *builder, sj_technique technique)
{
    return technique == SJ_TECHNIQUE_LEAF_COPY ? sj_hook_by_copy(builder)
                                               : sj_hook_in_place(builder);
}

/* True if the bytes before `code` may be ret, nop, int3, zero, a jump or a call. */
static bool ends_before(const uint8_t *code)
{
    enum { RET = 0xc3, NOP = 0x90, TRAP = 0xcc, JUMP = 0xe9, JUMP_SHORT = 0xeb, CALL = 0xe8 };
    return code[-1] == RET || code[-1] == NOP || code[-1] == TRAP || code[-1] == 0 ||
           code[-2] == JUMP_SHORT || code[-5] == JUMP || code[-5] == CALL;
}

const sj_machine sj_machine_x86_64 = {
    .ends_before = ends_before,
    .mask_addresses = sj_x86_64_mask_addresses,
    .elf_machine = EM_X86_64,
    .relocation_relative = R_X86_64_RELATIVE,
    .relocation_absolute = R_X86_64_64,
    .relocation_resolver = R_X86_64_IRELATIVE,
    .relocation_slot = R_X86_64_JUMP_SLOT,
    .relocation_data = R_X86_64_GLOB_DAT,
    .shows_loads = true,
    .shows_flags = true,
    .open_decoder = sj_x86_64_open_decoder,
    .close_decoder = sj_x86_64_close_decoder,
    .decode = sj_x86_64_decode,
    .find_tables = sj_x86_64_find_tables,
    .entry = sj_x86_64_entry,
    .find_switch = sj_x86_64_find_switch,
    .frame_step = sj_x86_64_frame_step,
    .hook = hook_x86_64,
};
