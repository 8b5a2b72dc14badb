#include "agent/control/pair_map.h"

#include <stdbool.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 256 };

void sj_pair_map_deinit(sj_pair_map *map)
{
    free(map->pairs);
    *map = (sj_pair_map){0};
}

static size_t place_of(const sj_pair_map *map, uint64_t key, uint32_t sub)
{
    const uint64_t hash = (key ^ (uint64_t)sub << 40) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash >> 32) & (map->capacity - 1);
}

static bool is_free(const sj_pair *pair)
{
    return pair->key == 0 && pair->sub == 0;
}

/* The pair of a key, or the free place where it belongs. The map has a free place. */
static sj_pair *find_place(const sj_pair_map *map, uint64_t key, uint32_t sub)
{
    size_t at = place_of(map, key, sub);
    while (!is_free(&map->pairs[at]) && (map->pairs[at].key != key || map->pairs[at].sub != sub)) {
        at = (at + 1) & (map->capacity - 1);
    }
    return &map->pairs[at];
}

sj_pair *sj_pair_map_find(const sj_pair_map *map, uint64_t key, uint32_t sub)
{
    if (map->count == 0) {
        return NULL;
    }
    sj_pair *pair = find_place(map, key, sub);
    return is_free(pair) ? NULL : pair;
}

static sj_status grow(sj_pair_map *map)
{
    sj_pair_map grown = {.capacity = map->capacity != 0 ? 2 * map->capacity : FIRST_CAPACITY,
                         .count = map->count};
    grown.pairs = calloc(grown.capacity, sizeof(*grown.pairs));
    if (grown.pairs == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        const sj_pair *pair = &map->pairs[i];
        if (!is_free(pair)) {
            *find_place(&grown, pair->key, pair->sub) = *pair;
        }
    }
    free(map->pairs);
    *map = grown;
    return SJ_OK;
}

sj_status sj_pair_map_put(sj_pair_map *map, const sj_pair *pair)
{
    if (map->count >= map->capacity / 2) {
        SJ_TRY(grow(map));
    }
    sj_pair *place = find_place(map, pair->key, pair->sub);
    map->count += is_free(place) ? 1 : 0;
    *place = *pair;
    return SJ_OK;
}

void sj_pair_map_remove(sj_pair_map *map, sj_pair *pair)
{
    /* What follows moves up, as far as its own place allows: no marks of removed pairs are left. */
    const size_t mask = map->capacity - 1;
    size_t hole = (size_t)(pair - map->pairs);
    for (size_t at = (hole + 1) & mask; !is_free(&map->pairs[at]); at = (at + 1) & mask) {
        const size_t home = place_of(map, map->pairs[at].key, map->pairs[at].sub);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            map->pairs[hole] = map->pairs[at];
            hole = at;
        }
    }
    map->pairs[hole] = (sj_pair){0};
    map->count--;
}
