#include "collector-server/query/call_groups.h"

#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 1024 };

static size_t hash_keys(const int64_t keys[SJ_GROUP_KEYS])
{
    uint64_t hash = 0;
    for (size_t i = 0; i < SJ_GROUP_KEYS; ++i) {
        hash = (hash ^ (uint64_t)keys[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (size_t)hash;
}

/* Returns the slot of the group with these keys, or the free slot where it belongs. */
static uint32_t *find_slot(const sj_call_groups *groups, const int64_t keys[SJ_GROUP_KEYS])
{
    size_t at = hash_keys(keys) & (groups->slot_count - 1);
    while (groups->slots[at] != 0 && memcmp(groups->groups[groups->slots[at] - 1].keys, keys,
                                            SJ_GROUP_KEYS * sizeof(*keys)) != 0) {
        at = (at + 1) & (groups->slot_count - 1);
    }
    return &groups->slots[at];
}

/* Grows the hash table if half of its slots are used. */
static sj_status grow_slots(sj_call_groups *groups)
{
    if (groups->count * 2 < groups->slot_count) {
        return SJ_OK;
    }
    const size_t count = groups->slot_count == 0 ? FIRST_SLOTS : groups->slot_count * 2;
    uint32_t *slots = calloc(count, sizeof(*slots));
    if (slots == NULL) {
        return SJ_ENOMEM;
    }
    free(groups->slots);
    groups->slots = slots;
    groups->slot_count = count;
    for (size_t i = 0; i < groups->count; ++i) {
        *find_slot(groups, groups->groups[i].keys) = (uint32_t)i + 1;
    }
    return SJ_OK;
}

sj_status sj_call_groups_find(sj_call_groups *groups, const int64_t keys[SJ_GROUP_KEYS],
                              uint32_t *number)
{
    SJ_TRY(grow_slots(groups));
    uint32_t *slot = find_slot(groups, keys);
    if (*slot == 0) {
        if (groups->count == SJ_GROUPS_MAX) {
            return SJ_ELIMIT;
        }
        SJ_TRY(sj_array_reserve(&groups->groups, &groups->capacity, groups->count, 1,
                                sizeof(*groups->groups)));
        sj_call_group *group = &groups->groups[groups->count++];
        *group = (sj_call_group){.min_ns = INT64_MAX, .max_ns = INT64_MIN};
        memcpy(group->keys, keys, sizeof(group->keys));
        *slot = (uint32_t)groups->count;
    }
    *number = *slot - 1;
    return SJ_OK;
}

sj_status sj_call_groups_add_duration(sj_call_groups *groups, sj_call_group *group,
                                      int64_t duration_ns)
{
    const uint32_t before = group->durations.octave_count;
    SJ_TRY(sj_histogram_add(&group->durations, (uint64_t)duration_ns, 1));
    groups->histogram_bytes +=
        (group->durations.octave_count - before) * sizeof(*group->durations.octaves);
    return groups->histogram_bytes <= SJ_GROUPS_MAX_HISTOGRAM_BYTES ? SJ_OK : SJ_ELIMIT;
}

int64_t sj_call_groups_quantile(const sj_call_group *group, double q)
{
    const sj_quantile found = sj_histogram_find_quantile(&group->durations, q);
    return sj_quantile_within(&found, (int64_t)found.value, group->min_ns, group->max_ns);
}

void sj_call_groups_clear(sj_call_groups *groups)
{
    for (size_t i = 0; i < groups->count; ++i) {
        sj_histogram_deinit(&groups->groups[i].durations);
    }
    free(groups->groups);
    free(groups->slots);
    *groups = (sj_call_groups){0};
}
