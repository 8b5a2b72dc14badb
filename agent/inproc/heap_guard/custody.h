/* The custody (agent/abi/heap_custody.h): the pool's state and the code that takes guarded blocks
 * back when the agent has left. One mapping: data, then a copy of the custodian's code, which finds
 * the data in front of itself. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_CUSTODY_H
#define SJ_AGENT_INPROC_HEAP_GUARD_CUSTODY_H

#include "agent/abi/heap_custody.h"
#include "agent/abi/zombies.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_CUSTODY_DATA_BYTES = 8192, SJ_CUSTODY_CODE_BYTES = 4096 };

/* Which functions a block is from, and which may take it back; several bits: not known which. */
typedef enum sj_block_family {
    SJ_FAMILY_MALLOC = 1,
    SJ_FAMILY_NEW = 2,
    SJ_FAMILY_NEW_ARRAY = 4,
    SJ_FAMILY_ANY = 7
} sj_block_family;

typedef struct sj_pool {
    uint64_t base;
    uint32_t shift; /* the mapping has 1 << shift bytes */
    uint32_t slots;
    uint32_t stack_bytes;
    uint32_t queue_mask;
    uint8_t *records;             /* sj_pool_slot and two stacks each */
    _Atomic uint32_t *queue;      /* 1 + slot: freed rooms, first in, first out */
    _Atomic uint32_t fresh;       /* slots that were used at least once */
    _Atomic uint32_t head;        /* of the queue: next to take */
    _Atomic uint32_t tail;        /* next to put */
    _Atomic uint64_t held_bytes;  /* of memory, by all blocks */
    uint32_t was_left;            /* rooms may be open although no block lives in them */
    uint32_t has_guards;          /* pages are closed by guard regions (pages.c) */
    uint8_t *saved;               /* then: a ring with the content of freed blocks */
    uint64_t saved_bytes;         /* a power of two */
    _Atomic uint64_t saved_next;  /* places count bytes from the first on */
    _Atomic uint64_t saved_floor; /* what lies in front of this place was dropped */
} sj_pool;

typedef struct sj_custody {
    sj_heap_custody shared;
    uint64_t goes_to[SJ_HEADS];   /* where entries of this number lead for blocks of the pool */
    uint64_t originals[SJ_HEADS]; /* what they go on with otherwise */
    /* Where entries of the allocator lead for ordinary blocks that are quarantined; 0: nowhere */
    _Atomic uint64_t keeps_by[SJ_HEADS];
    /* Where entries of the allocator lead to be counted; 0: nowhere. What they go on with then. */
    _Atomic uint64_t counts_by[SJ_HEADS];
    uint64_t rests[SJ_HEADS];
    uint32_t has_counting;      /* the entries have such a way */
    uint8_t families[SJ_HEADS]; /* sj_block_family: what an entry gives out, or may take back */
    uint64_t operators_low;     /* code of the module that defines the operators; 0: none does */
    uint64_t operators_high;
    uint64_t new_block; /* malloc */
    sj_pool pool;
} sj_custody;

_Static_assert(sizeof(sj_custody) <= SJ_CUSTODY_DATA_BYTES, "the custody's data fits its pages");

extern sj_custody *sj_custody_now; /* NULL: none was made */

/* sj_custody_find finds what an agent left in this process, sj_custody_make makes a new one. NULL:
 * there is none; no memory, or the processor is not supported. */
sj_custody *sj_custody_find(void);
sj_custody *sj_custody_make(void);

/* sj_custody_take_over makes blocks that are taken back go to the custodian, who knows no agent. */
void sj_custody_take_over(sj_custody *custody);

/* What the custodian's code is, and where in it each entry's part begins; NULL: the processor is
 * not supported. */
const void *sj_custodian_code(size_t *bytes);
uint64_t sj_custodian_offset(sj_zombie_head head);

#endif
