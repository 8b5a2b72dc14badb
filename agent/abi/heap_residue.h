/* The residue: the part of the monitor of freed memory that stays in a process when the agent is
 * unloaded. It holds the live guarded blocks and the code that frees them. It is a mapping of its
 * own, which a later agent finds by its name and takes over. All integers have the machine's byte
 * order. */
#ifndef SJ_AGENT_ABI_HEAP_RESIDUE_H
#define SJ_AGENT_ABI_HEAP_RESIDUE_H

#include "agent/abi/hooked_module.h"
#include "agent/abi/zombies.h"

#include <stdatomic.h>
#include <stdint.h>

#define SJ_HEAP_RESIDUE_MAGIC UINT64_C(0x5944545355434853) /* "SHCUSTDY" */
#define SJ_HEAP_RESIDUE_NAME "sojourn-heap"

enum { SJ_HEAP_RESIDUE_VERSION = 5 };

typedef struct sj_heap_residue {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t live; /* Live guarded blocks, and those about to be created. */
    /* 1: all entries are patched. The writer of the entries sets it. No block is guarded before, so
     * that the C library never has to free a guarded block. */
    _Atomic uint32_t is_whole;
    uint32_t reserved;
    uint64_t pool_bytes; /* Size of the pool's address range. Only live blocks use memory in it. */
    /* Freeing entries, by sj_heap_part. They stay patched while blocks are live. */
    sj_hooked_module freeing_modules[SJ_HEAP_PARTS];
} sj_heap_residue;

#endif
