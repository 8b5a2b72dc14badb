/* The residue (agent/abi/heap_residue.h) stays in the program when the agent is unloaded. It
 * consists of the pool's state and the code that frees guarded blocks then. It is one mapping. The
 * code is position independent and finds the data directly before itself. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_RESIDUE_H
#define SJ_AGENT_INPROC_HEAP_GUARD_RESIDUE_H

#include "agent/abi/heap_residue.h"
#include "agent/abi/page.h"
#include "agent/abi/zombies.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_RESIDUE_DATA_BYTES = 2 * SJ_PAGE_MOST_BYTES, SJ_RESIDUE_CODE_BYTES = SJ_PAGE_MOST_BYTES };

/* A family of functions that belong together: blocks that one of them allocates, another one frees.
 * Several bits mean that the family may be any of these. */
typedef enum sj_block_family {
    SJ_FAMILY_MALLOC = 1,
    SJ_FAMILY_NEW = 2,
    SJ_FAMILY_NEW_ARRAY = 4,
    SJ_FAMILY_ANY = 7
} sj_block_family;

/* Number of sizes of slots: for blocks of at most 16 KiB, 128 KiB and 1 MiB. */
enum { SJ_POOL_CLASSES = 3 };

/* Slots of one size, directly after those of the class before. */
typedef struct sj_pool_class {
    uint64_t start;      /* Address of the first slot. */
    uint32_t slot_bytes; /* A guard page, then the data pages. */
    uint32_t slots;
    uint32_t first; /* Index of the first slot's record. */
    uint32_t queue_mask;
    _Atomic uint32_t *queue; /* FIFO of freed slots, each as 1 + its index. */
    _Atomic uint32_t fresh;  /* Number of slots that were used at least once. */
    _Atomic uint32_t head;   /* Position in `queue` from which the next slot is claimed. */
    _Atomic uint32_t tail;   /* Position in `queue` to which the next slot is written. */
} sj_pool_class;

typedef struct sj_pool {
    uint64_t base;
    uint32_t shift; /* The mapping has `1 << shift` bytes. */
    uint32_t slots; /* Slots of all classes. */
    uint32_t stack_bytes;
    uint8_t *records;                       /* For each slot an sj_pool_slot and two stacks. */
    sj_pool_class classes[SJ_POOL_CLASSES]; /* Small blocks first. */
    _Atomic uint64_t held_bytes;            /* Bytes of memory that the pages of all slots use. */
    /* True once an agent has detached: then pages of slots without a live block may be open. */
    uint32_t was_left;
    uint32_t has_guards;  /* True if pages are closed by guard regions (pages.c). */
    uint8_t *saved;       /* Ring of the saved contents of freed blocks, with guard regions only. */
    uint64_t saved_bytes; /* A power of two. */
    /* Position of the next saved byte. Positions count all bytes ever saved. */
    _Atomic uint64_t saved_next;
    _Atomic uint64_t saved_floor; /* Content before this position was dropped. */
    uint64_t page_bytes;          /* Size of a page, for code that cannot call sj_page_bytes. */
} sj_pool;

typedef struct sj_residue {
    sj_heap_residue shared;
    /* Function to which an entry jumps for a block of the pool. The entries of sigaction and
     * pthread_sigmask always jump there. */
    uint64_t block_handlers[SJ_HEAP_ENTRIES];
    uint64_t originals[SJ_HEAP_ENTRIES]; /* Address that runs the original function of the entry. */
    /* Function to which a freeing entry jumps for other blocks while frees are delayed or checked;
     * else 0. */
    _Atomic uint64_t delay_handlers[SJ_HEAP_ENTRIES];
    /* Function to which an entry jumps while its calls are counted; else 0. */
    _Atomic uint64_t counting_handlers[SJ_HEAP_ENTRIES];
    uint64_t uncounted[SJ_HEAP_ENTRIES]; /* Code of an entry that a counting function calls. */
    uint32_t has_counting; /* True if the entries have a jump to the counting functions. */
    uint8_t families[SJ_HEAP_ENTRIES]; /* Bits of sj_block_family of each entry. */
    /* Address range of the module that defines all operators new and delete; 0 if not known. */
    uint64_t operators_low;
    uint64_t operators_high;
    uint64_t new_block; /* Address of malloc. */
    sj_pool pool;
} sj_residue;

_Static_assert(sizeof(sj_residue) <= SJ_RESIDUE_DATA_BYTES, "the residue's data fits its pages");

extern sj_residue *sj_residue_now; /* NULL if no residue was created. */

/* Returns the residue that an earlier agent left in this process, or NULL. */
sj_residue *sj_residue_find(void);

/* Creates a residue. Returns NULL if the kernel refuses, or if its code is too large. */
sj_residue *sj_residue_new(void);

/* Makes the entries jump to the residue's own code, which does not need the agent. */
void sj_residue_point_at_own_code(sj_residue *residue);

/* Returns the residue's code and its size. */
const void *sj_residue_code(size_t *bytes);

/* Returns the offset of an entry's code in the residue's code, in bytes. */
uint64_t sj_residue_code_offset(sj_heap_entry entry);

#endif
