/* The pair map: a growing hash table of small numbers. One thread. */
#ifndef SJ_AGENT_CONTROL_PAIR_MAP_H
#define SJ_AGENT_CONTROL_PAIR_MAP_H

#include "proto/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sj_pair {
    uint64_t key; /* key and sub are looked up together; 0 and 0 is no key */
    uint32_t sub;
    uint32_t first;
    uint32_t second;
} sj_pair;

/* Zeroed is empty. */
typedef struct sj_pair_map {
    sj_pair *pairs;
    size_t capacity; /* a power of 2, or 0 */
    size_t count;
} sj_pair_map;

void sj_pair_map_deinit(sj_pair_map *map);

/* sj_pair_map_find gives the pair of a key, or NULL. Valid until the map is changed. */
sj_pair *sj_pair_map_find(const sj_pair_map *map, uint64_t key, uint32_t sub);

/* sj_pair_map_put adds a pair or replaces that of its key. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_pair_map_put(sj_pair_map *map, const sj_pair *pair);

/* sj_pair_map_remove removes a pair that sj_pair_map_find gave. */
void sj_pair_map_remove(sj_pair_map *map, sj_pair *pair);

#endif
