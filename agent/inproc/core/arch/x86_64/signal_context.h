/* What a signal's frame says of the interrupted thread, and room of the frame's that the kernel
 * does not read. */
#ifndef SJ_AGENT_INPROC_CORE_ARCH_X86_64_SIGNAL_CONTEXT_H
#define SJ_AGENT_INPROC_CORE_ARCH_X86_64_SIGNAL_CONTEXT_H

#include "agent/abi/saved_context.h"
#include "agent/abi/stub_map.h"

#include <ucontext.h>

static inline sj_stub_state sj_context_get(const void *frame)
{
    const ucontext_t *context = frame;
    return (sj_stub_state){.pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP],
                           .sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP]};
}

static inline void sj_context_set(void *frame, const sj_stub_state *state)
{
    ucontext_t *context = frame;
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)state->pc;
    context->uc_mcontext.gregs[REG_RSP] = (greg_t)state->sp;
}

static inline void sj_context_set_fault(void *frame, uint64_t address)
{
    ucontext_t *context = frame;
    context->uc_mcontext.gregs[REG_CR2] = (greg_t)address;
}

/* sj_context_saved returns that room; NULL: the frame has none. */
static inline sj_saved_context *sj_context_saved(void *frame)
{
    enum { RESERVED_BYTES = 64 };
    _Static_assert(sizeof(sj_saved_context) <= RESERVED_BYTES, "it fits");
    return (sj_saved_context *)(void *)((uint8_t *)frame + SJ_SAVED_CONTEXT_AT);
}

#endif
