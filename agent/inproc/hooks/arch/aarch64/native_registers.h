/* DWARF numbers of registers, their count, and the size of the red zone. The program counter has no
 * such number and follows the others. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_NATIVE_REGISTERS_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_NATIVE_REGISTERS_H

enum {
    SJ_NATIVE_REGISTERS = 33,
    SJ_NATIVE_SP = 31,
    SJ_NATIVE_RETURN = 30, /* number of the return address in unwind tables */
    SJ_NATIVE_PC = 32,
    SJ_NATIVE_RED_ZONE = 0, /* bytes below the stack pointer that signals do not change */
    SJ_NATIVE_RECORD = 16   /* register in which a stub passes its sj_dispatch_record */
};

#endif
