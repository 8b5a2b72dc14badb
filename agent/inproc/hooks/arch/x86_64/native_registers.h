/* DWARF numbers of registers, their count, and the size of the red zone. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_NATIVE_REGISTERS_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_NATIVE_REGISTERS_H

enum {
    SJ_NATIVE_REGISTERS = 17,
    SJ_NATIVE_SP = 7,
    SJ_NATIVE_RETURN = 16, /* number of the return address in unwind tables */
    SJ_NATIVE_PC = 16,
    SJ_NATIVE_RED_ZONE = 128, /* bytes below the stack pointer that signals do not change */
    SJ_NATIVE_RECORD = 11     /* register in which a stub passes its sj_dispatch_record */
};

#endif
