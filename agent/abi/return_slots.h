/* Return addresses of dispatched calls (agent/inproc/hooks/dispatch.h): tables in the program's
 * memory, from which a tracer restores them on the stacks. Native layout: both processes run on one
 * machine. */
#ifndef SJ_AGENT_ABI_RETURN_SLOTS_H
#define SJ_AGENT_ABI_RETURN_SLOTS_H

#include "agent/abi/machine.h"

#include <stdint.h>

/* The data of one call for the thunk. It belongs to the stack word that holds the return address,
 * or (AArch64) that the stack pointer addresses at the entry. */
typedef struct sj_return_slot {
    uint64_t return_address;
    uint32_t leave_tag;
    uint32_t reserved;
} sj_return_slot;

enum {
    SJ_RETURN_ADDRESS_BITS = SJ_MACHINE_ADDRESS_BITS,
    /* 1: during the call, the stack word that the slot belongs to holds the thunk's address */
    SJ_RETURN_IS_IN_SLOT = SJ_MACHINE_CALL_PUSHES,
    SJ_RETURN_REGION_SHIFT = 30, /* log2 of the stack bytes that one region serves */
    SJ_RETURN_REGIONS = 1 << (SJ_RETURN_ADDRESS_BITS - SJ_RETURN_REGION_SHIFT)
};

/* Twice the size of the stack served: one slot per word of stack. */
#define SJ_RETURN_REGION_BYTES (UINT64_C(2) << SJ_RETURN_REGION_SHIFT)

#endif
