#include "agent/planner/machine.h"

#include <elf.h>

static const sj_machine x86_64 = {
    .elf_machine = EM_X86_64,
    .relocation_relative = R_X86_64_RELATIVE,
    .relocation_absolute = R_X86_64_64,
    .relocation_resolver = R_X86_64_IRELATIVE,
    .relocation_slot = R_X86_64_JUMP_SLOT,
    .relocation_data = R_X86_64_GLOB_DAT,
    .tells_loads = true,
    .tells_flags = true,
    .open_decoder = sj_x86_64_open_decoder,
    .decode = sj_x86_64_decode,
    .read_tables = sj_read_tables,
    .head = sj_x86_64_head,
    .find_switch = sj_x86_64_find_switch,
    .hook = sj_x86_64_hook,
};

#if !defined(SJ_MACHINE_HOST_ONLY)
static const sj_machine aarch64 = {
    .elf_machine = EM_AARCH64,
    .relocation_relative = R_AARCH64_RELATIVE,
    .relocation_absolute = R_AARCH64_ABS64,
    .relocation_resolver = R_AARCH64_IRELATIVE,
    .relocation_slot = R_AARCH64_JUMP_SLOT,
    .relocation_data = R_AARCH64_GLOB_DAT,
    .open_decoder = sj_aarch64_open_decoder,
    .close_decoder = sj_aarch64_close_decoder,
    .decode = sj_aarch64_decode,
    .finish_piece = sj_aarch64_finish_piece,
    .read_tables = sj_aarch64_read_tables,
    .head = sj_aarch64_head,
    .find_switch = sj_aarch64_find_switch,
    .hook = sj_aarch64_hook,
};
#endif

const sj_machine *sj_machine_of(uint16_t elf_machine)
{
    static const sj_machine *const machines[] = {
        &x86_64,
#if !defined(SJ_MACHINE_HOST_ONLY)
        &aarch64,
#endif
    };
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        if (machines[i]->elf_machine == elf_machine) {
            return machines[i];
        }
    }
    return NULL;
}

sj_status sj_decoder_open(sj_decoder *decoder, const sj_machine *machine, uint64_t text_low)
{
    *decoder = (sj_decoder){.machine = machine, .text_low = text_low};
    return machine->open_decoder(decoder);
}

void sj_decoder_close(sj_decoder *decoder)
{
    if (decoder->machine != NULL && decoder->machine->close_decoder != NULL) {
        decoder->machine->close_decoder(decoder);
    }
    decoder->machine = NULL;
}

void sj_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
               sj_code *code, uint64_t *immediate)
{
    decoder->machine->decode(decoder, bytes, size, at, code, immediate);
}
