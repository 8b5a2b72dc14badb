/* The residue (agent/abi/heap_residue.h): the pool's state, and the code that frees guarded blocks
 * after the agent was unloaded. It is one mapping: data, then a copy of position-independent code,
 * which finds the data before itself. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_RESIDUE_H
#define SJ_AGENT_INPROC_HEAP_GUARD_RESIDUE_H

#include "agent/abi/heap_residue.h"
#include "agent/abi/zombies.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_RESIDUE_DATA_BYTES = 8192, SJ_RESIDUE_CODE_BYTES = 4096 };

/* The functions that allocate a block, and that may free it. Several bits: it is not known which of
 * them. */
typedef enum sj_block_family {
    SJ_FAMILY_MALLOC = 1,
    SJ_FAMILY_NEW = 2,
    SJ_FAMILY_NEW_ARRAY = 4,
    SJ_FAMILY_ANY = 7
} sj_block_family;

typedef struct sj_pool {
    uint64_t base;
    uint32_t shift; /* The mapping has `1 << shift` bytes. */
    uint32_t slots;
    uint32_t stack_bytes;
    uint32_t queue_mask;
    uint8_t *records;            /* For each slot an sj_pool_slot and two stacks. */
    _Atomic uint32_t *queue;     /* Freed slots, each as 1 + its number, first in, first out. */
    _Atomic uint32_t fresh;      /* How many slots were used at least once. */
    _Atomic uint32_t head;       /* Position in `queue` from which the next slot is claimed. */
    _Atomic uint32_t tail;       /* Position in `queue` to which the next slot is written. */
    _Atomic uint64_t held_bytes; /* Memory of all blocks. */
    /* True if an agent has detached: pages may be open although their slot has no live block. */
    uint32_t was_left;
    uint32_t has_guards;  /* True if guard regions close pages (pages.c). */
    uint8_t *saved;       /* With guard regions: a ring that holds the content of freed blocks. */
    uint64_t saved_bytes; /* A power of two. */
    /* Position of the next saved byte. Positions count all bytes ever saved. */
    _Atomic uint64_t saved_next;
    _Atomic uint64_t saved_floor; /* Content before this position was dropped. */
} sj_pool;

typedef struct sj_residue {
    sj_heap_residue shared;
    /* Where an entry jumps for a block of the pool. The entries of sigaction and pthread_sigmask
     * always jump there. */
    uint64_t block_handlers[SJ_HEAP_ENTRIES];
    uint64_t originals[SJ_HEAP_ENTRIES]; /* The program's own code behind our patch of the entry. */
    /* Where a freeing entry jumps for ordinary blocks while frees are delayed; else 0. */
    _Atomic uint64_t delay_handlers[SJ_HEAP_ENTRIES];
    /* Where an entry jumps to have its call counted; else 0. `uncounted` is what it runs then. */
    _Atomic uint64_t counting_handlers[SJ_HEAP_ENTRIES];
    uint64_t uncounted[SJ_HEAP_ENTRIES];
    uint32_t has_counting; /* True if the entries have a jump to the counting functions. */
    uint8_t families[SJ_HEAP_ENTRIES]; /* Bits of sj_block_family: what an entry allocates, or may
                                          free. */
    /* Code of the module that defines the operators new and delete. 0: none does. */
    uint64_t operators_low;
    uint64_t operators_high;
    uint64_t new_block; /* Address of malloc. */
    sj_pool pool;
} sj_residue;

_Static_assert(sizeof(sj_residue) <= SJ_RESIDUE_DATA_BYTES, "the residue's data fits its pages");

extern sj_residue *sj_residue_now; /* NULL if no residue was created. */

/* sj_residue_find returns the residue that an agent left in this process, or NULL. sj_residue_new
 * creates one. It returns NULL if out of memory, or if the processor is not supported. */
sj_residue *sj_residue_find(void);
sj_residue *sj_residue_new(void);

/* Points the entries at the residue's own code, which does not need the agent. */
void sj_residue_point_at_own_code(sj_residue *residue);

/* sj_residue_code returns the residue's code, or NULL if the processor is not supported.
 * sj_residue_code_offset returns where in it the code for an entry begins. */
const void *sj_residue_code(size_t *bytes);
uint64_t sj_residue_code_offset(sj_heap_entry entry);

#endif
