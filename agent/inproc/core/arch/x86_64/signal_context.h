/* Reads and writes the interrupted thread's state in a signal's frame. Finds space in the frame
 * that the kernel does not read. */
#ifndef SJ_AGENT_INPROC_CORE_ARCH_X86_64_SIGNAL_CONTEXT_H
#define SJ_AGENT_INPROC_CORE_ARCH_X86_64_SIGNAL_CONTEXT_H

#include "agent/abi/saved_context.h"
#include "agent/abi/stub_map.h"
#include "agent/inproc/hooks/native_frame.h"

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

/* The kernel's index for the register of each DWARF number. */
static const uint8_t sj_context_order[SJ_NATIVE_REGISTERS] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

static inline void sj_context_get_all(const void *frame, uint64_t registers[SJ_NATIVE_REGISTERS])
{
    const ucontext_t *context = frame;
    for (uint32_t i = 0; i < SJ_NATIVE_REGISTERS; i++) {
        registers[i] = (uint64_t)context->uc_mcontext.gregs[sj_context_order[i]];
    }
}

static inline void sj_context_set_all(void *frame, const uint64_t registers[SJ_NATIVE_REGISTERS])
{
    ucontext_t *context = frame;
    for (uint32_t i = 0; i < SJ_NATIVE_REGISTERS; i++) {
        context->uc_mcontext.gregs[sj_context_order[i]] = (greg_t)registers[i];
    }
}

/* Returns the space that the kernel does not read, or NULL if the frame has none. */
static inline sj_saved_context *sj_context_saved(void *frame)
{
    enum { RESERVED_BYTES = 64 };
    _Static_assert(sizeof(sj_saved_context) <= RESERVED_BYTES, "it fits");
    return (sj_saved_context *)(void *)((uint8_t *)frame + SJ_SAVED_CONTEXT_AT);
}

#endif
