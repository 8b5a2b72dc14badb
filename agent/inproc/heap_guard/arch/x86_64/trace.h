/* Saves registers by their DWARF numbers. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_TRACE_H
#define SJ_AGENT_INPROC_HEAP_GUARD_TRACE_H

#include "agent/abi/zombies.h"

#include <stdbool.h>
#include <ucontext.h>

enum { SJ_TRACE_STACK_POINTER = 7, SJ_TRACE_COUNTER = 16 };

/* Stores the callee-saved registers, the stack pointer and the pc of the calling function. The
 * offsets are 8 * DWARF number. */
#define sj_trace_here(trace)                                                                       \
    do {                                                                                           \
        uint64_t *registers_ = (trace)->registers;                                                 \
        __asm__ volatile("mov %%rbx, 24(%0)\n\t"                                                   \
                         "mov %%rbp, 48(%0)\n\t"                                                   \
                         "mov %%rsp, 56(%0)\n\t"                                                   \
                         "mov %%r12, 96(%0)\n\t"                                                   \
                         "mov %%r13, 104(%0)\n\t"                                                  \
                         "mov %%r14, 112(%0)\n\t"                                                  \
                         "mov %%r15, 120(%0)\n\t"                                                  \
                         "lea 1f(%%rip), %%rcx\n"                                                  \
                         "1:\n\t"                                                                  \
                         "mov %%rcx, 128(%0)"                                                      \
                         :                                                                         \
                         : "r"(registers_)                                                         \
                         : "rcx", "memory");                                                       \
    } while (0)

/* Stores the registers of the interrupted code. `context` is the argument of a signal handler. */
static inline void sj_trace_of_context(sj_zombie_trace *trace, const ucontext_t *context)
{
    static const uint8_t register_order[SJ_ZOMBIE_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (uint32_t i = 0; i < SJ_ZOMBIE_REGISTERS; i++) {
        trace->registers[i] = (uint64_t)context->uc_mcontext.gregs[register_order[i]];
    }
}

/* True if the fault was a write: bit 1 of the page fault's error code. */
static inline bool sj_context_is_write(const ucontext_t *context)
{
    return (context->uc_mcontext.gregs[REG_ERR] & 2) != 0;
}

#endif
