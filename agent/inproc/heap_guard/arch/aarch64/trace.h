/* Heap monitoring is not supported on AArch64 (arch/aarch64/entries.c), so these functions are
 * never called. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_TRACE_H
#define SJ_AGENT_INPROC_HEAP_GUARD_TRACE_H

#include "agent/abi/zombies.h"

#include <stdbool.h>
#include <ucontext.h>

enum { SJ_TRACE_STACK_POINTER = 7, SJ_TRACE_COUNTER = 16 };

#define sj_trace_here(trace) ((void)(trace))

static inline void sj_trace_of_context(sj_zombie_trace *trace, const ucontext_t *context)
{
    (void)trace;
    (void)context;
}

static inline bool sj_context_is_write(const ucontext_t *context)
{
    (void)context;
    return false;
}

#endif
