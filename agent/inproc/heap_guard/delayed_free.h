/* Delayed frees: an ordinary block that the program frees is filled with a pattern and kept for a
 * while. A second free of the block, or a virtual call on the object in it, is reported at once. A
 * write to the block is reported when it is finally freed. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_DELAYED_FREE_H
#define SJ_AGENT_INPROC_HEAP_GUARD_DELAYED_FREE_H

#include "agent/abi/zombies.h"

#include <stdbool.h>

/* A block whose free is delayed. The stack of the program's free follows this structure. */
typedef struct sj_kept_block {
    _Atomic uint32_t state;       /* An sj_kept_state. */
    _Atomic uint32_t is_reported; /* True if a use of the block was reported. */
    uint64_t address;
    uint64_t usable; /* In bytes, as the allocator says. */
    uint64_t site;   /* Return address of the call that freed the block. */
    uint64_t type;   /* Address of the type_info of the object in the block. 0: none is known. */
    sj_zombie_trace release;
} sj_kept_block;

/* Why a block was finally freed. */
typedef enum sj_release_reason {
    SJ_RELEASE_FULL = 0,
    SJ_RELEASE_PRESSURE,
    SJ_RELEASE_DETACH
} sj_release_reason;

/* Returns the function that an entry jumps to while frees are delayed. Returns 0 if the entry has
 * none. */
uint64_t sj_delayed_free_entry(const sj_zombie_region *region, sj_heap_entry head);

/* Delays frees from now on, if the settings ask for it. One thread at a time. */
void sj_delayed_free_begin(const sj_zombie_region *region);
bool sj_delayed_free_is_on(void);

/* Frees all delayed blocks and stops delaying. Other threads may run and hold locks of the
 * allocator; the caller holds none. */
void sj_delayed_free_end(void);

/* Reports which delayed blocks were written to. The blocks stay, because the program is ending. */
void sj_delayed_free_check(void);

/* Frees the older half of the delayed blocks. The caller holds no lock of the allocator. */
void sj_delayed_free_shrink(void);

/* Returns the delayed block that begins at `address` and holds an object, or NULL. `address` may be
 * any number; it is not read. Another thread may free the block at any time: then the fields of the
 * result are old. */
sj_kept_block *sj_delayed_free_find_object(uint64_t address);

void sj_delayed_free_after_fork(void);

/* Releases the memory of the records. Delaying has ended, and no thread is in the agent. */
void sj_delayed_free_deinit(void);

#endif
