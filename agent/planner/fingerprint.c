/* Design notes. If a linker places functions in another order, only distances change: the distances
 * of calls and jumps out of the function, and the distances to data. These distances are cleared
 * before an instruction is hashed. Jumps within the function, registers, offsets in structures and
 * constants are hashed.
 *
 * Callees are hashed only where the code alone is not unique: in short wrappers, and in functions
 * with equal code. If all functions hashed their callees, a changed callee would change the
 * fingerprints of its callers. */
#include "agent/planner/fingerprint.h"

#include "agent/planner/machine.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_CODES = 4, MOST_CODE_BYTES = 16 };

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Returns a hash of the instructions of a range. Sets `*counted` to the number of instructions that
 * are not no-ops. */
static uint64_t hash_code(const sj_module *module, const sj_code_range *range, uint32_t *counted)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    uint32_t pages = 0;
    *counted = 0;
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
        *counted += code->kind != SJ_CODE_NOP;
    }
    return hash;
}

static uint64_t finish_hash(uint64_t hash)
{
    hash ^= hash >> 29;
    return hash != 0 ? hash : 1;
}

static uint64_t fingerprint_of(const sj_module *module, const sj_code_range *range)
{
    uint32_t counted = 0;
    const uint64_t hash = hash_code(module, range, &counted);
    return counted < LEAST_CODES ? 0 : finish_hash(hash);
}

/* Returns a hash of the name of the function that an instruction of `range` calls or jumps to, or
 * its fingerprint in `plain` if it has no name. Returns 0 if the function does not exist. */
static uint64_t callee_of(const sj_module *module, const sj_code_range *range, const sj_code *code,
                          const uint64_t *plain)
{
    const int64_t target = sj_code_target(code);
    if ((code->flags & SJ_CODE_BRANCH) == 0 ||
        (target >= range->start && target < (int64_t)range->start + range->size)) {
        return 0;
    }
    const uint32_t place = sj_module_range_at(module, target);
    if (place == SJ_CODE_RANGE_NONE) {
        return 0;
    }
    const char *name = module->ranges[place].name;
    return name[0] != '\0' ? hash_bytes(1, name, strlen(name)) : plain[place];
}

/* Returns the hash of a range's code and its callees. If no callee is known, returns the hash of
 * the code in `plain`. */
static uint64_t join_callees(const sj_module *module, uint32_t place, const uint64_t *plain)
{
    const sj_code_range *range = &module->ranges[place];
    bool has_callee = false;
    uint32_t counted = 0;
    uint64_t hash = hash_code(module, range, &counted);
    for (uint32_t i = 0; i < range->code_count && !range->is_undecodable; i++) {
        const uint64_t callee =
            callee_of(module, range, &module->codes[range->first_code + i], plain);
        if (callee != 0) {
            hash = hash_bytes(hash, &callee, sizeof(callee));
            has_callee = true;
        }
    }
    return has_callee ? finish_hash(hash) : plain[place];
}

static int compare_fingerprints(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* True if another function in the sorted list has the same fingerprint. */
static bool is_shared(const uint64_t *sorted, size_t count, uint64_t fingerprint)
{
    const uint64_t *found =
        bsearch(&fingerprint, sorted, count, sizeof(*sorted), compare_fingerprints);
    return (found > sorted && found[-1] == fingerprint) ||
           (found + 1 < sorted + count && found[1] == fingerprint);
}

sj_status sj_fingerprints_of(const sj_module *module, uint64_t *fingerprints)
{
    const size_t count = module->range_count;
    uint64_t *plain = calloc(count + 1, sizeof(*plain));
    uint64_t *sorted = calloc(count + 1, sizeof(*sorted));
    if (plain == NULL || sorted == NULL) {
        free(plain);
        free(sorted);
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const sj_code_range *range = &module->ranges[i];
        plain[i] = sorted[i] = range->name[0] == '\0' ? fingerprint_of(module, range) : 0;
    }
    qsort(sorted, count, sizeof(*sorted), compare_fingerprints);
    for (size_t i = 0; i < count; i++) {
        const bool is_enough = plain[i] != 0 && !is_shared(sorted, count, plain[i]);
        fingerprints[i] = module->ranges[i].name[0] != '\0' ? 0
                          : is_enough                       ? plain[i]
                                      : join_callees(module, (uint32_t)i, plain);
    }
    free(plain);
    free(sorted);
    return SJ_OK;
}
