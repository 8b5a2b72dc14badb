#include "agent/objfile/elf_machine.h"

#include <elf.h>

const sj_elf_machine sj_elf_x86_64 = {
    .number = EM_X86_64,
    .name = "x86-64",
    .key = "x86_64",
    .relative = R_X86_64_RELATIVE,
    .absolute = R_X86_64_64,
    .passes_result_address = true,
};
