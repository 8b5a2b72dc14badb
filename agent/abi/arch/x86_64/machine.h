/* x86-64: see agent/abi/machine.h. */
#ifndef SJ_AGENT_ABI_ARCH_X86_64_MACHINE_H
#define SJ_AGENT_ABI_ARCH_X86_64_MACHINE_H

#include <elf.h>
#include <stdint.h>

/* clang-format off */
#define SJ_ARCH_FILE(component, file) SJ_ARCH_QUOTED(agent/inproc/component/arch/x86_64/file)
/* clang-format on */

enum {
    SJ_MACHINE_ELF = EM_X86_64,
    SJ_MACHINE_ADDRESS_BITS = 47, /* bits of the address space that programs use */
    SJ_MACHINE_PAGE_MOST_BYTES = 4096,
    SJ_MACHINE_CALL_PUSHES = 1, /* a call pushes its return address */
    /* offset in words from the stack address in a call's records to its return address */
    SJ_MACHINE_RETURN_WORD = 0,
    /* index of the second result's register among the argument registers */
    SJ_MACHINE_SECOND_RESULT = 2,
    SJ_MACHINE_CLOCK_TELLS_HZ = 0,    /* 1: the clock's rate is known without a measurement */
    SJ_MACHINE_RESOLVERS_ARE_BARE = 1 /* resolvers of indirect functions have no arguments */
};

/* Used by tracers. */
enum {
    SJ_MACHINE_DWARF_SP = 7,         /* DWARF's number of the stack pointer */
    SJ_MACHINE_TRACE_REGISTERS = 17, /* saved by the monitor of freed memory; the last is the pc */
    /* this machine has no link register; tracers do not use this one (xmm13) */
    SJ_MACHINE_DWARF_LINK = 30,
    SJ_MACHINE_LONG_JUMP_BYTES = 5,
    SJ_MACHINE_SYSTEM_CALL = 0x050f, /* the instruction, as a little-endian number */
    SJ_MACHINE_SYSTEM_CALL_BYTES = 2,
    /* number of bytes that a tracer reads to recognise a signal frame */
    SJ_MACHINE_SIGNAL_FRAME_BYTES = 200
};

/* Relocations that write the address of a function into a word. */
enum {
    SJ_MACHINE_JUMP_SLOT = R_X86_64_JUMP_SLOT,
    SJ_MACHINE_GLOBAL_DATA = R_X86_64_GLOB_DAT,
    SJ_MACHINE_WORD = R_X86_64_64
};

#define SJ_MACHINE_CONVENTION SJ_CONVENTION_SYSTEM_V /* agent/policy/value_signature.h */
#define SJ_MACHINE_CLOCK_NAME "tsc"

static inline uint64_t sj_machine_ticks(void)
{
    return __builtin_ia32_rdtsc();
}

#endif
