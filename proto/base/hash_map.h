/* A growing hash table with open addressing: two small numbers by a key of 96 bits. One thread. */
#ifndef SJ_PROTO_BASE_HASH_MAP_H
#define SJ_PROTO_BASE_HASH_MAP_H

#include "proto/base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sj_hash_entry {
    uint64_t key; /* key and sub are looked up together; 0 and 0 is no key */
    uint32_t sub;
    uint32_t first;
    uint32_t second;
} sj_hash_entry;

/* Zeroed is empty. */
typedef struct sj_hash_map {
    sj_hash_entry *entries;
    size_t capacity; /* a power of 2, or 0 */
    size_t count;
} sj_hash_map;

void sj_hash_map_deinit(sj_hash_map *map);

/* sj_hash_map_find gives the entry of a key, or NULL. Valid until the map is changed. */
sj_hash_entry *sj_hash_map_find(const sj_hash_map *map, uint64_t key, uint32_t sub);

/* sj_hash_map_put adds a entry or replaces that of its key. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_hash_map_put(sj_hash_map *map, const sj_hash_entry *entry);

/* sj_hash_map_remove removes a entry that sj_hash_map_find gave. */
void sj_hash_map_remove(sj_hash_map *map, sj_hash_entry *entry);

#endif
