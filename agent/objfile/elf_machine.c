#include "agent/objfile/elf_machine.h"

#include <elf.h>
#include <stddef.h>

const sj_elf_machine *sj_elf_machine_of(uint16_t number)
{
    static const sj_elf_machine *const machines[] = {&sj_elf_x86_64, &sj_elf_aarch64};
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        if (machines[i]->number == number) {
            return machines[i];
        }
    }
    return NULL;
}

const char *sj_elf_machine_name(uint16_t number)
{
    const sj_elf_machine *machine = sj_elf_machine_of(number);
    switch (number) {
    case EM_386:
        return "i386";
    case EM_ARM:
        return "arm";
    case EM_RISCV:
        return "risc-v";
    default:
        return machine != NULL ? machine->name : "another machine";
    }
}
