/* The machine that this is built for: what its header in arch/ says. A machine more has such a
 * header, folders of its name in the rooms that have an arch/, and a line here.
 *
 * SJ_ARCH_FILE(room, file) names a header of its folder in a room of agent/inproc, for #include. */
#ifndef SJ_AGENT_ABI_MACHINE_H
#define SJ_AGENT_ABI_MACHINE_H

#define SJ_ARCH_QUOTED(path) #path

#if defined(__x86_64__)
#include "agent/abi/arch/x86_64/machine.h"
#elif defined(__aarch64__)
#include "agent/abi/arch/aarch64/machine.h"
#else
#error "Sojourn does not know this machine"
#endif

#endif
