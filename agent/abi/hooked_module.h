/* The changes of one module's code: the agent keeps this table, and a tracer reads it and writes
 * the code. */
#ifndef SJ_AGENT_ABI_HOOKED_MODULE_H
#define SJ_AGENT_ABI_HOOKED_MODULE_H

#include "agent/abi/plan.h"

#include <stdint.h>

/* Values of `function`, greater than any function id, of changes at the allocator's entry points:
 * functions that allocate, and functions that free. */
enum { SJ_HOOK_HEAP_ALLOCATING = 0x50000000, SJ_HOOK_HEAP_FREEING = 0x60000000 };

/* `function` of a change that other changes have replaced. It is not in the code any longer, but
 * threads may still be in its stub. */
enum { SJ_HOOK_REPLACED = 0x40000000 };

/* One change of the code. This process or a tracer can undo and redo it
 * (agent/livepatch/toggle.h). */
typedef struct sj_hook_change {
    uint64_t address;
    uint32_t function; /* id; 0: not of a function */
    uint8_t bytes;
    /* number of bytes from `address` on that no thread may be inside while the change is written */
    uint8_t window;
    /* 1: a thread inside the window is moved to the window's start, because the instructions that
     * it has executed there may run again */
    uint8_t repeats;
    uint8_t written; /* 1: the code holds `patched`, 0: it holds `original` */
    uint8_t is_slot; /* 1: an import's slot, which the loader may also write */
    uint8_t original[SJ_PATCH_MAX_BYTES];
    uint8_t patched[SJ_PATCH_MAX_BYTES];
} sj_hook_change;

/* The changes made to one module. All zero: none. Owned by the caller. */
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
