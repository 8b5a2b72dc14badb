/* Checks that the agent is built for the machine that a program runs on. The dynamic loader ignores
 * an agent of another machine, and the program would run unrecorded. */
#ifndef SJ_AGENT_LAUNCH_AGENT_MACHINE_H
#define SJ_AGENT_LAUNCH_AGENT_MACHINE_H

#include "proto/base/error.h"

#include <stdint.h>

/* `machine`: the e_machine of the program. Returns SJ_EUNSUPPORTED if the agent is built for
 * another machine, or an error of sj_elf_open. The error names the file and what to do. Blocks
 * while it reads a few KB of the file. */
SJ_MUST_CHECK sj_status sj_agent_check_machine(const char *agent_path, uint16_t machine,
                                               sj_error *error);

#endif
