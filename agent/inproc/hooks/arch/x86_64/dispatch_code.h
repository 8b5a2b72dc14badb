/* Describes the stack frames of the code for dispatched calls and slow paths. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_DISPATCH_CODE_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_DISPATCH_CODE_H

#include "agent/inproc/hooks/native_frame.h"

#include <stddef.h>

/* Distance from the stack pointer at the interrupted place down to the saved registers, in bytes.
 * Above the registers lie the return address and the flags, or the registers that
 * sj_arch_dispatch_entry has saved. */
enum {
    SJ_ENTRY_SAVED_DISTANCE = 16 + SJ_NATIVE_REGISTERS * 8,
    SJ_DISPATCH_SAVED_DISTANCE = 160 + SJ_NATIVE_REGISTERS * 8
};

/* `registers` are those of the caller of sj_arch_jump_entry. Changes them to those at the point
 * where the stub continues. `first` are the registers at the first instruction of
 * sj_arch_jump_entry, if the thread was interrupted there, else NULL. Reads the stack. */
static inline void sj_jump_leave(uint64_t registers[SJ_NATIVE_REGISTERS], const uint64_t *first)
{
    enum { RDX = 1, RETURN_BYTES = 8, KEPT_BELOW = 56 };
    registers[SJ_NATIVE_SP] -= RETURN_BYTES;
    const uint64_t saved_rdx = registers[SJ_NATIVE_SP] - KEPT_BELOW;
    registers[SJ_NATIVE_PC] = first != NULL ? first[RDX] : *(const uint64_t *)(uintptr_t)saved_rdx;
}

#endif
