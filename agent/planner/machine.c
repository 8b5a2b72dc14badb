#include "agent/planner/machine.h"

#include <stddef.h>

const sj_machine *sj_machine_of(uint16_t elf_machine)
{
    static const sj_machine *const machines[] = {
        &sj_machine_x86_64,
#if !defined(SJ_MACHINE_HOST_ONLY)
        &sj_machine_aarch64,
#endif
    };
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        if (machines[i]->elf_machine == elf_machine) {
            return machines[i];
        }
    }
    return NULL;
}
