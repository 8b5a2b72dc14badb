/* Describes the stack frames of the code for dispatched calls and slow paths. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_DISPATCH_CODE_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_DISPATCH_CODE_H

#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/hooks/native_frame.h"

/* Distance from the stack pointer at the interrupted place down to the saved registers, in bytes.
 * One word above the registers keeps the stack aligned. */
enum {
    SJ_ENTRY_SAVED_DISTANCE = 8 + SJ_NATIVE_REGISTERS * 8,
    SJ_DISPATCH_SAVED_DISTANCE = SJ_ENTRY_SAVED_DISTANCE
};

/* `registers` are those of the caller of sj_arch_jump_entry. Changes them to those at the point
 * where the stub continues: the link register holds the program's return address. `first` is
 * unused. */
static inline void sj_jump_leave(uint64_t registers[SJ_NATIVE_REGISTERS], const uint64_t *first)
{
    enum { STUB_BYTES = 32 };
    (void)first;
    registers[SJ_NATIVE_PC] = registers[SJ_NATIVE_RETURN];
    registers[SJ_NATIVE_RETURN] = sj_return_slots_kept(registers[SJ_NATIVE_SP] + STUB_BYTES);
}

#endif
