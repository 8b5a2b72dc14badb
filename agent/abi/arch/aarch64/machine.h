/* AArch64: see agent/abi/machine.h. */
#ifndef SJ_AGENT_ABI_ARCH_AARCH64_MACHINE_H
#define SJ_AGENT_ABI_ARCH_AARCH64_MACHINE_H

#include <elf.h>
#include <stdint.h>

/* clang-format off */
#define SJ_ARCH_FILE(component, file) SJ_ARCH_QUOTED(agent/inproc/component/arch/aarch64/file)
/* clang-format on */

enum {
    SJ_MACHINE_ELF = EM_AARCH64,
    SJ_MACHINE_ADDRESS_BITS = 48,
    SJ_MACHINE_PAGE_MOST_BYTES = 65536,
    SJ_MACHINE_CALL_PUSHES = 0,
    /* stubs and thunks save x30 this many words from the stack address in a call's records */
    SJ_MACHINE_RETURN_WORD = -5,
    SJ_MACHINE_SECOND_RESULT = 1,
    SJ_MACHINE_CLOCK_TELLS_HZ = 1,
    SJ_MACHINE_RESOLVERS_ARE_BARE = 0
};

enum {
    SJ_MACHINE_DWARF_SP = 31,
    SJ_MACHINE_TRACE_REGISTERS = 33, /* saved by the monitor of freed memory; the last is the pc */
    SJ_MACHINE_DWARF_LINK = 30,
    SJ_MACHINE_LONG_JUMP_BYTES = 4,
    SJ_MACHINE_SYSTEM_CALL_BYTES = 4,
    SJ_MACHINE_SIGNAL_FRAME_BYTES = 472
};

enum {
    SJ_MACHINE_JUMP_SLOT = R_AARCH64_JUMP_SLOT,
    SJ_MACHINE_GLOBAL_DATA = R_AARCH64_GLOB_DAT,
    SJ_MACHINE_WORD = R_AARCH64_ABS64
};

#define SJ_MACHINE_SYSTEM_CALL UINT32_C(0xd4000001) /* svc #0 */
#define SJ_MACHINE_CONVENTION SJ_CONVENTION_AAPCS64
#define SJ_MACHINE_CLOCK_NAME "cntvct"

static inline uint64_t sj_machine_ticks(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

#endif
