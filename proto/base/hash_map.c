#include "proto/base/hash_map.h"

#include <stdbool.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 256 };

void sj_hash_map_deinit(sj_hash_map *map)
{
    free(map->entries);
    *map = (sj_hash_map){0};
}

static size_t place_of(const sj_hash_map *map, uint64_t key, uint32_t sub)
{
    const uint64_t hash = (key ^ (uint64_t)sub << 40) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash >> 32) & (map->capacity - 1);
}

static bool is_free(const sj_hash_entry *entry)
{
    return entry->key == 0 && entry->sub == 0;
}

/* Returns the entry of a key, or the free entry where it would be added. The map must have a free
 * entry. */
static sj_hash_entry *find_place(const sj_hash_map *map, uint64_t key, uint32_t sub)
{
    size_t at = place_of(map, key, sub);
    while (!is_free(&map->entries[at]) &&
           (map->entries[at].key != key || map->entries[at].sub != sub)) {
        at = (at + 1) & (map->capacity - 1);
    }
    return &map->entries[at];
}

sj_hash_entry *sj_hash_map_find(const sj_hash_map *map, uint64_t key, uint32_t sub)
{
    if (map->count == 0) {
        return NULL;
    }
    sj_hash_entry *entry = find_place(map, key, sub);
    return is_free(entry) ? NULL : entry;
}

static sj_status grow(sj_hash_map *map)
{
    sj_hash_map grown = {.capacity = map->capacity != 0 ? 2 * map->capacity : FIRST_CAPACITY,
                         .count = map->count};
    grown.entries = calloc(grown.capacity, sizeof(*grown.entries));
    if (grown.entries == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        const sj_hash_entry *entry = &map->entries[i];
        if (!is_free(entry)) {
            *find_place(&grown, entry->key, entry->sub) = *entry;
        }
    }
    free(map->entries);
    *map = grown;
    return SJ_OK;
}

sj_status sj_hash_map_put(sj_hash_map *map, const sj_hash_entry *entry)
{
    if (map->count >= map->capacity / 2) {
        SJ_TRY(grow(map));
    }
    sj_hash_entry *place = find_place(map, entry->key, entry->sub);
    map->count += is_free(place) ? 1 : 0;
    *place = *entry;
    return SJ_OK;
}

void sj_hash_map_remove(sj_hash_map *map, sj_hash_entry *entry)
{
    /* Shifts the following entries back, each no further than its home slot, so that no tombstones
     * are needed. */
    const size_t mask = map->capacity - 1;
    size_t hole = (size_t)(entry - map->entries);
    for (size_t at = (hole + 1) & mask; !is_free(&map->entries[at]); at = (at + 1) & mask) {
        const size_t home = place_of(map, map->entries[at].key, map->entries[at].sub);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            map->entries[hole] = map->entries[at];
            hole = at;
        }
    }
    map->entries[hole] = (sj_hash_entry){0};
    map->count--;
}
