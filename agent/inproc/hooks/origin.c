/* Design notes
 *
 * A stub begins where its patch leads and holds copies of the instructions that the patch replaced,
 * or of the whole function. Its layout is not kept; copies are found again by their bytes. */
#include "agent/inproc/hooks/hooks.h"

#include <string.h>

enum { JUMP_BYTES = 5, JUMP = 0xe9, BODY_BYTES = 512, LEAST_IN_WINDOW = 3, LEAST_IN_BODY = 5 };
enum { COMPARED_BYTES = 8 };

/* The stub that a change leads to; 0: it is no jump of its own. */
static uint64_t stub_of(const sj_hook_change *change)
{
    int32_t distance;
    if (change->is_slot != 0 || change->bytes < JUMP_BYTES || change->patched[0] != JUMP) {
        return 0;
    }
    memcpy(&distance, change->patched + 1, sizeof(distance));
    return change->address + JUMP_BYTES + (uint64_t)(int64_t)distance;
}

static uint8_t original_byte(const sj_hook_change *change, uint32_t at)
{
    return at < change->bytes ? change->original[at]
                              : ((const uint8_t *)(uintptr_t)change->address)[at];
}

static uint32_t common_bytes(const sj_hook_change *change, uint32_t at, const uint8_t *copy)
{
    uint32_t count = 0;
    while (count < COMPARED_BYTES && original_byte(change, at + count) == copy[count]) {
        count++;
    }
    return count;
}

/* The offset in [0, end) whose bytes are most like those of the copy, or -1. */
static int32_t find_bytes(const sj_hook_change *change, uint32_t end, uint32_t least,
                          const uint8_t *copy)
{
    int32_t found = -1;
    for (uint32_t at = 0; at < end; at++) {
        const uint32_t count = common_bytes(change, at, copy);
        if (count >= least) {
            found = (int32_t)at;
            least = count + 1;
        }
    }
    return found;
}

uint64_t sj_hooks_find_original(const sj_hooked_module *module, uint64_t address)
{
    const sj_hook_change *nearest = NULL;
    uint64_t nearest_stub = 0;
    if (module->stubs == NULL ||
        address - (uint64_t)(uintptr_t)module->stubs >= module->stubs_bytes) {
        return 0;
    }
    for (uint32_t i = 0; i < module->change_count; i++) {
        const uint64_t stub = stub_of(&module->changes[i]);
        if (stub != 0 && stub <= address && stub > nearest_stub) {
            nearest = &module->changes[i];
            nearest_stub = stub;
        }
    }
    if (nearest == NULL) {
        return 0;
    }
    const uint8_t *copy = (const uint8_t *)(uintptr_t)address;
    int32_t at = find_bytes(nearest, nearest->window, LEAST_IN_WINDOW, copy);
    if (at < 0) {
        at = find_bytes(nearest, BODY_BYTES, LEAST_IN_BODY, copy);
    }
    return nearest->address + (at > 0 ? (uint64_t)at : 0);
}
