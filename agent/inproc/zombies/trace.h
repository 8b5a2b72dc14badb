#ifndef SJ_AGENT_INPROC_ZOMBIES_TRACE_OF_ARCH_H
#define SJ_AGENT_INPROC_ZOMBIES_TRACE_OF_ARCH_H

#if defined(__aarch64__)
#include "agent/inproc/zombies/arch/aarch64/trace.h"
#else
#include "agent/inproc/zombies/arch/x86_64/trace.h"
#endif

#endif
