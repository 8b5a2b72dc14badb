/* What stays of the monitor of freed memory when the agent leaves a process: guarded blocks that
 * the program still has, and the code that takes them back. It lies in a mapping of its own, which
 * a later agent finds by its name and goes on with. Native layout. */
#ifndef SJ_AGENT_ABI_HEAP_CUSTODY_H
#define SJ_AGENT_ABI_HEAP_CUSTODY_H

#include "agent/abi/hooked_module.h"
#include "agent/abi/zombies.h"

#include <stdatomic.h>
#include <stdint.h>

#define SJ_HEAP_CUSTODY_MAGIC UINT64_C(0x5944545355434853) /* "SHCUSTDY" */
#define SJ_HEAP_CUSTODY_NAME "sojourn-heap"

enum { SJ_HEAP_CUSTODY_VERSION = 4 };

typedef struct sj_heap_custody {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t live; /* guarded blocks that the program has, and those about to be made */
    /* 1: all entries are patched. Set by who wrote them: no block is given out before, so that none
     * is that the C library would have to take back. */
    _Atomic uint32_t is_whole;
    uint32_t reserved;
    uint64_t pool_bytes; /* of addresses; what is in no block that lives takes no memory */
    /* Entries that take blocks back, by sj_heap_part; they stay as long as blocks live. */
    sj_hooked_module givers[SJ_HEAP_PARTS];
} sj_heap_custody;

#endif
