/* Tells addresses that cannot be blocks of the C library: of the stack, of static data, or inside a
 * block. The C library ends the program if such an address is freed. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_FREE_CHECK_H
#define SJ_AGENT_INPROC_HEAP_GUARD_FREE_CHECK_H

#include "agent/abi/zombies.h"

#include <stdbool.h>
#include <stdint.h>

/* Checks frees from now on if the allocator is glibc. Returns whether it does. Not thread-safe. */
bool sj_free_check_begin(const sj_zombie_region *region);

/* True if the address may be a block, or if frees are not checked. Reads the words before the
 * address, as the C library's free does. */
bool sj_free_check_may_be_block(uint64_t address);

/* Reports a free or resize of an address that is not a block. `site` is the return address of the
 * call. */
void sj_free_check_report(uint64_t address, uint64_t site);

#endif
