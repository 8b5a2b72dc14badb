/* A growing hash table with open addressing. It maps a key of 96 bits (`key` and `sub`) to the
 * 32-bit numbers `first` and `second`. Not thread-safe. */
#ifndef SJ_PROTO_BASE_HASH_MAP_H
#define SJ_PROTO_BASE_HASH_MAP_H

#include "proto/base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sj_hash_entry {
    uint64_t key; /* if `key` and `sub` are 0, the entry is free, so this key cannot be used */
    uint32_t sub;
    uint32_t first;
    uint32_t second;
} sj_hash_entry;

/* A zeroed map is empty. */
typedef struct sj_hash_map {
    sj_hash_entry *entries;
    size_t capacity; /* a power of 2, or 0 */
    size_t count;
} sj_hash_map;

void sj_hash_map_deinit(sj_hash_map *map);

/* Returns the entry of a key, or NULL. The entry is borrowed, and valid until the map changes. */
sj_hash_entry *sj_hash_map_find(const sj_hash_map *map, uint64_t key, uint32_t sub);

/* Adds an entry, or replaces the entry of the same key. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_hash_map_put(sj_hash_map *map, const sj_hash_entry *entry);

/* Removes an entry that sj_hash_map_find returned. */
void sj_hash_map_remove(sj_hash_map *map, sj_hash_entry *entry);

#endif
