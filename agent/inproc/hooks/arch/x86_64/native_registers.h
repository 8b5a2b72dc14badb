/* Registers by DWARF number, as unwind tables have them. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_NATIVE_REGISTERS_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_NATIVE_REGISTERS_H

enum {
    SJ_NATIVE_REGISTERS = 17,
    SJ_NATIVE_SP = 7,
    SJ_NATIVE_RETURN = 16, /* the number that unwind tables give the return address */
    SJ_NATIVE_PC = 16,
    SJ_NATIVE_RED_ZONE = 128, /* bytes below the stack pointer that signals leave alone */
    SJ_NATIVE_RECORD = 11     /* that dispatched calls pass their record in */
};

#endif
