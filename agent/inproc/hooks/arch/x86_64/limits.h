/* x86-64: see agent/inproc/hooks/arch.h. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_LIMITS_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_LIMITS_H

#include <stdint.h>

#define SJ_ARCH_REACH_BYTES (UINT64_C(0x7fffffff) - (UINT64_C(1) << 20))
#define SJ_ARCH_RETURN_ZERO_CODE UINT64_C(0xccccccccccc3c031) /* xor %eax, %eax; ret */

/* Moved code is as long as the original or is one instruction, so distances in the copy are those
 * in the original. */
#define SJ_ARCH_MOVED_KIND SJ_STUB_COPY

/* STACK, PLACE and LINK are the numbers of registers in unwind tables. BY_TABLE is 1 if unwinders
 * can evaluate the table of a whole area. PLACE_IN_MEMORY is 1 if a table may give the place as a
 * word in memory. */
enum {
    SJ_ARCH_UNWIND_STACK = 7,
    SJ_ARCH_UNWIND_PLACE = 16,
    SJ_ARCH_UNWIND_LINK = 0, /* this machine has no link register */
    SJ_ARCH_UNWIND_BY_TABLE = 1,
    SJ_ARCH_UNWIND_PLACE_IN_MEMORY = 1
};

enum {
    SJ_RETURN_PATCH_BYTES = 5,
    SJ_ARCH_JUMP_PATCH = 1, /* SJ_PATCH_JUMP32 */
    SJ_ARCH_NUMBERED_CALL_BYTES = 7
};

#endif
