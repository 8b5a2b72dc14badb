/* Delayed frees: when the program frees an ordinary block, the agent fills it with a pattern and
 * frees it later. A second free of the block, or a virtual call on the object in it, is reported at
 * once. A write to the block is reported when the agent frees it. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_DELAYED_FREE_H
#define SJ_AGENT_INPROC_HEAP_GUARD_DELAYED_FREE_H

#include "agent/abi/zombies.h"

#include <stdbool.h>

/* A block whose free is delayed. A copy of the stack of the freeing thread follows this structure.
 */
typedef struct sj_kept_block {
    _Atomic uint32_t state;       /* An sj_kept_state. */
    _Atomic uint32_t is_reported; /* True if a use of the block was reported. */
    uint64_t address;
    uint64_t usable; /* Size in bytes, from malloc_usable_size. */
    uint64_t site;   /* Return address of the call that freed the block. */
    uint64_t type;   /* Address of the type_info of the object in the block; 0 if not known. */
    sj_zombie_trace release;
} sj_kept_block;

/* Why the agent frees a delayed block. */
typedef enum sj_release_reason {
    SJ_RELEASE_FULL = 0,
    SJ_RELEASE_PRESSURE,
    SJ_RELEASE_DETACH
} sj_release_reason;

/* Returns the address of the function that replaces an allocator entry while frees are delayed, or
 * 0 if the entry is not replaced. */
uint64_t sj_delayed_free_entry(const sj_zombie_region *region, sj_heap_entry entry);

/* Delays frees from now on, if the settings ask for it and memory suffices. Also checks frees
 * (free_check.h). Not thread-safe. */
void sj_delayed_free_begin(const sj_zombie_region *region);
bool sj_delayed_free_is_on(void);

/* Stops delaying and frees all delayed blocks. Other threads may run and hold locks of the
 * allocator; the caller holds none. Waits up to 5 s for threads that own a record. */
void sj_delayed_free_end(void);

/* Reports each delayed block that the program wrote to. Frees no block, because the program is
 * ending. */
void sj_delayed_free_check(void);

/* Frees the oldest delayed blocks until half of their bytes are left. The caller holds no lock of
 * the allocator. */
void sj_delayed_free_shrink(void);

/* Returns the delayed block that begins at `address` and holds an object with virtual functions, or
 * NULL. Does not access the memory at `address`, which may be any number. Another thread may free
 * the block at any time; the fields of the result are then out of date. */
sj_kept_block *sj_delayed_free_find_object(uint64_t address);

/* In the child of a fork, empties the records that threads of the parent owned. */
void sj_delayed_free_after_fork(void);

/* Unmaps the records. Call it after sj_delayed_free_end, when no thread is in the agent. */
void sj_delayed_free_deinit(void);

#endif
