#include "agent/planner/targets.h"

#include <stdlib.h>

/* Design notes. Ranges that jump into each other are one function. A union-find forest (`parents`)
 * joins them to sets. Only one member of a set may be a function; the others are its cold parts. If
 * a set has several functions, the planner cannot assign the exits to one of them, and excludes
 * them all. */

static uint32_t find_root(uint32_t *parents, uint32_t range)
{
    while (parents[range] != range) {
        parents[range] = parents[parents[range]];
        range = parents[range];
    }
    return range;
}

static void join_sets(uint32_t *parents, uint32_t a, uint32_t b)
{
    a = find_root(parents, a);
    b = find_root(parents, b);
    if (a != b) {
        parents[a > b ? a : b] = a < b ? a : b;
    }
}

/* Returns the length of a name without a compiler's suffix for a part of a function. */
static size_t base_name_bytes(const char *name)
{
    const char *part = sj_name_part(name);
    return part != NULL ? (size_t)(part - name) : strlen(name);
}

/* Joins parts that no jump leads to with the function of the same base name. Exceptions may be the
 * only way into such a part. The first round stores functions in a hash table of names, and the
 * second round looks up parts. */
static void join_by_name(const sj_module *module, uint32_t *parents, uint32_t *slots, size_t mask)
{
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < module->range_count; i++) {
            const char *name = module->ranges[i].name;
            const bool is_part = module->ranges[i].is_cold;
            const size_t bytes = base_name_bytes(name);
            if (name[0] == 0 || is_part != (round == 1)) {
                continue;
            }
            uint64_t hash = UINT64_C(14695981039346656037);
            for (size_t k = 0; k < bytes; k++) {
                hash = (hash ^ (uint8_t)name[k]) * UINT64_C(1099511628211);
            }
            size_t slot = (hash ^ hash >> 32) & mask;
            while (slots[slot] != SJ_CODE_RANGE_NONE) {
                const char *other = module->ranges[slots[slot]].name;
                if (strlen(other) == bytes && memcmp(other, name, bytes) == 0) {
                    break;
                }
                slot = (slot + 1) & mask;
            }
            if (round == 0) {
                slots[slot] = i;
            } else if (slots[slot] != SJ_CODE_RANGE_NONE && find_root(parents, i) == i) {
                join_sets(parents, slots[slot], i);
            }
        }
    }
}

/* Joins cold parts that are alone in their sets with functions by their names. */
static sj_status join_named(const sj_module *module, uint32_t *parents)
{
    bool is_needed = false;
    for (uint32_t i = 0; i < module->range_count && !is_needed; i++) {
        is_needed = module->ranges[i].is_cold && module->ranges[i].name[0] != 0 && parents[i] == i;
    }
    if (!is_needed) {
        return SJ_OK;
    }
    size_t slots_count = 64;
    while (slots_count < 2 * module->range_count) {
        slots_count *= 2;
    }
    uint32_t *slots = malloc(slots_count * sizeof(*slots));
    if (slots == NULL) {
        return SJ_ENOMEM;
    }
    memset(slots, 0xff, slots_count * sizeof(*slots));
    join_by_name(module, parents, slots, slots_count - 1);
    free(slots);
    return SJ_OK;
}

/* Chooses the function of each set and assigns the parts to it. `owners` is scratch memory: the
 * function of each set, by the set's root. */
static void assign_parts(sj_module *module, uint32_t *parents, uint32_t *owners)
{
    for (uint32_t i = 0; i < module->range_count; i++) {
        owners[i] = SJ_CODE_RANGE_NONE;
    }
    for (uint32_t i = 0; i < module->range_count; i++) {
        if (module->ranges[i].is_cold) {
            continue;
        }
        const uint32_t root = find_root(parents, i);
        if (owners[root] == SJ_CODE_RANGE_NONE) {
            owners[root] = i;
        } else {
            module->ranges[i].skip = SJ_SKIP_OVERLAP;
            module->ranges[owners[root]].skip = SJ_SKIP_OVERLAP;
        }
    }
    for (uint32_t i = (uint32_t)module->range_count; i-- > 0;) {
        sj_code_range *range = &module->ranges[i];
        const uint32_t owner = owners[find_root(parents, i)];
        if (!range->is_cold) {
            continue;
        }
        if (owner != SJ_CODE_RANGE_NONE) {
            sj_code_range *function = &module->ranges[owner];
            range->parent = owner;
            range->next_part = function->next_part;
            function->next_part = i;
            function->part_count++;
            function->has_table |= range->has_table;
            if (range->skip != SJ_SKIP_NONE && function->skip == SJ_SKIP_NONE) {
                function->skip = range->skip;
            }
        }
        range->skip = SJ_SKIP_COLD_PART;
    }
}

/* Joins the two sets of each weak link, unless both had a function before. */
static void join_weak(sj_module *module, uint32_t *parents, uint32_t *has_function,
                      const sj_links *weak)
{
    memset(has_function, 0, module->range_count * sizeof(*has_function));
    for (uint32_t i = 0; i < module->range_count; i++) {
        if (!module->ranges[i].is_cold) {
            has_function[find_root(parents, i)] = 1;
        }
    }
    for (size_t i = 0; i < weak->count; i++) {
        const sj_link *link = &weak->items[i];
        if (has_function[find_root(parents, link->from)] == 0 ||
            has_function[find_root(parents, link->to)] == 0) {
            join_sets(parents, link->from, link->to);
        }
    }
}

sj_status sj_join_parts(sj_module *module, sj_links *strong, const sj_links *weak)
{
    if (module->range_count == 0) {
        return SJ_OK;
    }
    uint32_t *parents = malloc(module->range_count * sizeof(*parents));
    uint32_t *scratch = malloc(module->range_count * sizeof(*scratch));
    if (parents == NULL || scratch == NULL) {
        free(parents);
        free(scratch);
        return SJ_ENOMEM;
    }
    for (uint32_t i = 0; i < module->range_count; i++) {
        parents[i] = i;
    }
    for (size_t i = 0; i < strong->count; i++) {
        join_sets(parents, strong->items[i].from, strong->items[i].to);
    }
    const sj_status status = join_named(module, parents);
    if (status == SJ_OK) {
        join_weak(module, parents, scratch, weak);
        assign_parts(module, parents, scratch);
    }
    free(parents);
    free(scratch);
    return status;
}
