/* Design notes. A linker that lays functions in another order changes nothing but distances: those
 * of calls and jumps out of the function, and those to data. They are cleared before an instruction
 * is hashed; jumps within the function, registers, offsets in structures and constants count. */
#include "agent/planner/fingerprint.h"

#include "agent/planner/machine.h"

enum { LEAST_CODES = 4, MOST_CODE_BYTES = 16 };

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

uint64_t sj_fingerprint_of(const sj_module *module, const sj_code_range *range)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    uint32_t pages = 0;
    uint32_t counted = 0;
    for (uint32_t i = 0; i < range->code_count && !range->is_undecodable; i++) {
        const sj_code *code = &module->codes[range->first_code + i];
        uint8_t bytes[MOST_CODE_BYTES] = {0};
        memcpy(bytes, module->text + code->at, code->length);
        module->machine->mask_addresses(module, code, bytes, &pages);
        hash = hash_bytes(hash, bytes, code->length);
        const int64_t target = sj_code_target(code) - range->start;
        if ((code->flags & SJ_CODE_BRANCH) != 0 && target >= 0 && target < range->size) {
            hash = hash_bytes(hash, &target, sizeof(target));
        }
        counted += code->kind != SJ_CODE_NOP;
    }
    if (counted < LEAST_CODES) {
        return 0;
    }
    hash ^= hash >> 29;
    return hash != 0 ? hash : 1;
}
