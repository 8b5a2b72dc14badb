/* How the code of dispatched calls and of slow paths changes the stack. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_DISPATCH_CODE_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_DISPATCH_CODE_H

#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/hooks/native_frame.h"

/* Start of the space for registers, in bytes below the stack pointer of the frame's place. A word
 * above the space keeps the stack aligned. */
enum {
    SJ_ENTRY_SAVED_DISTANCE = 8 + SJ_NATIVE_REGISTERS * 8,
    SJ_DISPATCH_SAVED_DISTANCE = SJ_ENTRY_SAVED_DISTANCE
};

/* Changes the registers behind the frame of sj_arch_jump_entry to those of the stub where it
 * continues. They then contain the program's return address. `first` is unused. */
static inline void sj_jump_leave(uint64_t registers[SJ_NATIVE_REGISTERS], const uint64_t *first)
{
    enum { STUB_BYTES = 32 };
    (void)first;
    registers[SJ_NATIVE_PC] = registers[SJ_NATIVE_RETURN];
    registers[SJ_NATIVE_RETURN] = sj_return_slots_kept(registers[SJ_NATIVE_SP] + STUB_BYTES);
}

#endif
