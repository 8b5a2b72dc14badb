#include "agent/planner/arch/aarch64/aarch64.h"

#include <elf.h>
#include <string.h>

/* True if the word before `code` is ret, nop, zero, b or bl. */
static bool ends_before(const uint8_t *code)
{
    enum { RET = 0xd65f03c0, NOP = 0xd503201f, BRANCH = 5, CALL = 0x25, LINK_SHIFT = 26 };
    uint32_t word;
    memcpy(&word, code - sizeof(word), sizeof(word));
    return word == (uint32_t)RET || word == (uint32_t)NOP || word == 0 ||
           word >> LINK_SHIFT == BRANCH || word >> LINK_SHIFT == CALL;
}

const sj_machine sj_machine_aarch64 = {
    .elf_machine = EM_AARCH64,
    .relocation_relative = R_AARCH64_RELATIVE,
    .relocation_absolute = R_AARCH64_ABS64,
    .relocation_resolver = R_AARCH64_IRELATIVE,
    .relocation_slot = R_AARCH64_JUMP_SLOT,
    .relocation_data = R_AARCH64_GLOB_DAT,
    .scans_in_order = true,
    .open_decoder = sj_aarch64_open_decoder,
    .close_decoder = sj_aarch64_close_decoder,
    .decode = sj_aarch64_decode,
    .finish_range = sj_aarch64_finish_range,
    .find_tables = sj_aarch64_find_tables,
    .entry = sj_aarch64_entry,
    .find_switch = sj_aarch64_find_switch,
    .ends_before = ends_before,
    .mask_addresses = sj_aarch64_mask_addresses,
    .hook = sj_aarch64_hook,
};
