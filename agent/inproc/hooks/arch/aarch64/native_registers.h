/* Registers by DWARF number, as unwind tables have them; the program counter follows the others. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_NATIVE_REGISTERS_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_NATIVE_REGISTERS_H

enum {
    SJ_NATIVE_REGISTERS = 33,
    SJ_NATIVE_SP = 31,
    SJ_NATIVE_RETURN = 30, /* the number that unwind tables give the return address */
    SJ_NATIVE_PC = 32,
    SJ_NATIVE_RED_ZONE = 0, /* bytes below the stack pointer that signals leave alone */
    SJ_NATIVE_RECORD = 16   /* that dispatched calls pass their record in */
};

#endif
