/* Recognizes addresses that cannot be blocks of glibc: on the stack, in static data, or inside a
 * block. glibc ends the program if such an address is freed. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_FREE_CHECK_H
#define SJ_AGENT_INPROC_HEAP_GUARD_FREE_CHECK_H

#include "agent/abi/zombies.h"

#include <stdbool.h>
#include <stdint.h>

/* Starts to check frees if the allocator is glibc and the policy watches heap blocks. Returns true
 * if frees are checked. Not thread-safe. */
bool sj_free_check_begin(const sj_zombie_region *region);

/* True if the address may be a block, or if frees are not checked. Reads the words before the
 * address, as glibc's free does. Async-signal-safe. */
bool sj_free_check_may_be_block(uint64_t address);

/* Reports a free or resize of an address that is not a block. Stops the program if the policy says
 * so. `site` is the return address of the call. */
void sj_free_check_report(uint64_t address, uint64_t site);

#endif
