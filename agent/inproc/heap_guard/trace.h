/* Includes the machine's functions that read registers: sj_trace_here, sj_trace_of_context,
 * sj_context_is_write. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_TRACE_OF_ARCH_H
#define SJ_AGENT_INPROC_HEAP_GUARD_TRACE_OF_ARCH_H

#include "agent/abi/machine.h"

#include SJ_ARCH_FILE(heap_guard, trace.h)

#endif
