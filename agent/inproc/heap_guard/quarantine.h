/* The quarantine: ordinary blocks that the program has freed are kept for a while, filled with a
 * pattern. What has written to one meanwhile is reported when the block is let go; that it is freed
 * again, or that a virtual function of the object in it is called, at once. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_QUARANTINE_H
#define SJ_AGENT_INPROC_HEAP_GUARD_QUARANTINE_H

#include "agent/abi/zombies.h"

#include <stdbool.h>

/* A block in quarantine; the stack of its free lies behind it. */
typedef struct sj_kept_block {
    _Atomic uint32_t state;       /* sj_kept_state */
    _Atomic uint32_t is_reported; /* a use of it has been reported */
    uint64_t address;
    uint64_t usable; /* bytes, as the allocator says */
    uint64_t site;   /* where the function that freed it returns to */
    uint64_t type;   /* of the object in it: address of its type_info; 0: none is known */
    sj_zombie_trace release;
} sj_kept_block;

/* Why a block was let go. */
typedef enum sj_quarantine_gone {
    SJ_GONE_FULL = 0,
    SJ_GONE_PRESSURE,
    SJ_GONE_LEFT
} sj_quarantine_gone;

/* sj_quarantine_entry returns the function that an entry leads ordinary blocks to while there is a
 * quarantine; 0: it goes on as if there were none. */
uint64_t sj_quarantine_entry(const sj_zombie_region *region, sj_zombie_head head);

/* sj_quarantine_begin keeps blocks from now on if the settings ask for it. One thread at a time. */
void sj_quarantine_begin(const sj_zombie_region *region);
bool sj_quarantine_is_on(void);

/* sj_quarantine_end lets all blocks go, and keeps none any more. Other threads run, and may hold
 * locks of the allocator, the calling thread holds none. */
void sj_quarantine_end(void);

/* sj_quarantine_check reports what has written to blocks in quarantine, which stay: the program
 * ends. */
void sj_quarantine_check(void);

/* sj_quarantine_shrink lets the older half go; the calling thread holds no lock of the allocator.
 */
void sj_quarantine_shrink(void);

/* sj_quarantine_find_object returns the block in quarantine that begins at an address, which may be
 * any, and has an object; NULL: none does. Reads nothing there. It may be let go at any time: what
 * is read of it is right or old. */
sj_kept_block *sj_quarantine_find_object(uint64_t address);

void sj_quarantine_after_fork(void);

/* sj_quarantine_forget gives the records' memory back, once it has ended and no thread is in the
 * agent. */
void sj_quarantine_forget(void);

#endif
