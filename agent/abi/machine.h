/* The machine that this file is compiled for. Its constants are in its header in arch/. A new
 * machine needs such a header, a folder with its name in each component that has an arch/ folder,
 * and a line here.
 *
 * SJ_ARCH_FILE(component, file) names a header in the machine's folder of a component of
 * agent/inproc, for #include. */
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
