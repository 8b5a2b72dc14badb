#include "agent/objfile/elf_machine.h"

#include <elf.h>

const sj_elf_machine sj_elf_aarch64 = {
    .number = EM_AARCH64,
    .name = "aarch64",
    .key = "aarch64",
    .relative = R_AARCH64_RELATIVE,
    .absolute = R_AARCH64_ABS64,
    .emulator = "qemu-aarch64",
    .sysroot = "/usr/aarch64-linux-gnu",
    .agent = "libsojourn-agent-aarch64.so",
};
