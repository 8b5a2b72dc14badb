/* How the code of dispatched calls and of slow paths changes the stack. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_DISPATCH_CODE_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_DISPATCH_CODE_H

#include "agent/inproc/hooks/native_frame.h"

#include <stddef.h>

/* Start of the space for registers, in bytes below the stack pointer of the frame's place. Above
 * the space lie the return address and the flags, or the registers that an entry of a dispatched
 * call has saved. */
enum {
    SJ_ENTRY_SAVED_DISTANCE = 16 + SJ_NATIVE_REGISTERS * 8,
    SJ_DISPATCH_SAVED_DISTANCE = 160 + SJ_NATIVE_REGISTERS * 8
};

/* Changes the registers behind the frame of sj_arch_jump_entry to those of the stub where it
 * continues. `first` are the registers at its first instruction, if it was interrupted there, else
 * NULL. Reads the stack. */
static inline void sj_jump_leave(uint64_t registers[SJ_NATIVE_REGISTERS], const uint64_t *first)
{
    enum { RDX = 1, RETURN_BYTES = 8, KEPT_BELOW = 56 };
    registers[SJ_NATIVE_SP] -= RETURN_BYTES;
    const uint64_t kept = registers[SJ_NATIVE_SP] - KEPT_BELOW;
    registers[SJ_NATIVE_PC] = first != NULL ? first[RDX] : *(const uint64_t *)(uintptr_t)kept;
}

#endif
