/* Where the return addresses of dispatched calls are kept (agent/inproc/hooks/dispatch.h): tables
 * in the program's memory, which a tracer reads to put them back on the stacks. Native layout: both
 * ends are on one machine. */
#ifndef SJ_AGENT_ABI_RETURN_SLOTS_H
#define SJ_AGENT_ABI_RETURN_SLOTS_H

#include "agent/abi/machine.h"

#include <stdint.h>

/* One word of stack that holds a return address, or (AArch64) that the stack pointer points to at a
 * call's entry: what the thunk needs. */
typedef struct sj_return_slot {
    uint64_t return_address;
    uint32_t leave_tag;
    uint32_t reserved;
} sj_return_slot;

enum {
    SJ_RETURN_ADDRESS_BITS = SJ_MACHINE_ADDRESS_BITS,
    /* the word of a slot holds the thunk's address during the call */
    SJ_RETURN_IS_IN_SLOT = SJ_MACHINE_CALL_PUSHES,
    SJ_RETURN_REGION_SHIFT = 30, /* log2 of the bytes of stack that one region of slots serves */
    SJ_RETURN_REGIONS = 1 << (SJ_RETURN_ADDRESS_BITS - SJ_RETURN_REGION_SHIFT)
};

/* Twice the size of the addresses served: a slot for each word of stack. */
#define SJ_RETURN_REGION_BYTES (UINT64_C(2) << SJ_RETURN_REGION_SHIFT)

#endif
