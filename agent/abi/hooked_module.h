/* The changes of one module: kept by the agent, read by a tracer, which writes the text
 * accordingly.
 */
#ifndef SJ_AGENT_ABI_HOOKED_MODULE_H
#define SJ_AGENT_ABI_HOOKED_MODULE_H

#include "agent/abi/plan.h"

#include <stdint.h>

/* Changes of the allocator's entries have these in the place of a function's id, which lie above
 * all ids: what gives blocks out, and what takes them back. */
enum { SJ_HOOK_HEAP_TAKERS = 0x50000000, SJ_HOOK_HEAP_GIVERS = 0x60000000 };

/* Changes that others have taken the place of have this: they are in the text no more. Threads may
 * still be in their stubs. */
enum { SJ_HOOK_REPLACED = 0x40000000 };

/* One change of the text, kept so that it can be undone and made again, by this process or by a
 * tracer (agent/livepatch/toggle.h). */
typedef struct sj_hook_change {
    uint64_t address;
    uint32_t function; /* id; 0: not of a function */
    uint8_t bytes;
    uint8_t window;  /* bytes that no thread may stand in while they are written */
    uint8_t written; /* 1: `patched` is in the text, 0: `original` is */
    uint8_t is_slot; /* 1: an import's slot, which the loader may write, too */
    uint8_t original[SJ_PATCH_MAX_BYTES];
    uint8_t patched[SJ_PATCH_MAX_BYTES];
} sj_hook_change;

/* What was done to one module. Zeroed is a module with nothing done; owned by the caller. */
typedef struct sj_hooked_module {
    uint64_t bias;
    uint8_t *stubs; /* executable memory of the stubs; NULL: none */
    uint64_t stubs_bytes;
    sj_hook_change *changes; /* mapped */
    uint64_t changes_bytes;
    uint32_t change_count;
    uint32_t first_function;
    struct sj_library_calls *calls; /* mapped; NULL: the plan has no imports */
} sj_hooked_module;

#endif
