/* AArch64: see agent/inproc/hooks/arch.h. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_LIMITS_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_LIMITS_H

#include <stdint.h>

#define SJ_ARCH_REACH_BYTES ((UINT64_C(1) << 27) - (UINT64_C(1) << 20))
#define SJ_ARCH_RETURN_ZERO_CODE UINT64_C(0xd65f03c052800000) /* mov w0, #0; ret */

/* A copied instruction may become several instructions. */
#define SJ_ARCH_MOVED_KIND SJ_STUB_FIXED

/* STACK, PLACE and LINK are the numbers of registers in unwind tables. BY_TABLE is 1 if unwinders
 * can evaluate the table of a whole area. PLACE_IN_MEMORY is 1 if a table may give the place as a
 * word in memory. Here it may not: libgcc does not know the size of the program counter, so it
 * cannot read one. */
enum {
    SJ_ARCH_UNWIND_STACK = 31,
    SJ_ARCH_UNWIND_PLACE = 32,
    SJ_ARCH_UNWIND_LINK = 30,
    SJ_ARCH_UNWIND_BY_TABLE = 0,
    SJ_ARCH_UNWIND_PLACE_IN_MEMORY = 0
};

enum {
    SJ_RETURN_PATCH_BYTES = 4,
    SJ_ARCH_JUMP_PATCH = 5, /* SJ_PATCH_BRANCH26 */
    SJ_ARCH_NUMBERED_CALL_BYTES = 8
};

#endif
