#include "agent/launch/agent_machine.h"

#include "agent/objfile/elf_machine.h"
#include "agent/objfile/elf_view.h"

sj_status sj_agent_check_machine(const char *agent_path, uint16_t machine, sj_error *error)
{
    sj_elf elf;
    SJ_TRY(sj_elf_open(agent_path, &elf, error));
    const uint16_t found = elf.machine;
    sj_elf_close(&elf);
    if (found == machine) {
        return SJ_OK;
    }
    return sj_fail(
        error, SJ_EUNSUPPORTED,
        "the agent %s is built for %s, and the program for %s; install Sojourn for %s, or "
        "name its agent with --agent",
        agent_path, sj_elf_machine_name(found), sj_elf_machine_name(machine),
        sj_elf_machine_name(machine));
}
