/* Sums cache: keeps the sums of blocks (block_sums.h) in memory for the next question. Stored
 * blocks do not change. So the sums of a window come from the cache, and only the blocks at its two
 * ends are read. One cache serves a database and all of its connections. Thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SUMS_CACHE_H
#define SJ_COLLECTOR_SERVER_QUERY_SUMS_CACHE_H

#include "collector-server/query/block_sums.h"

typedef struct sj_sums_cache sj_sums_cache;

/* Makes an empty cache of `most_bytes`. When it is full, the least recently used sums are removed.
 * Returns NULL if out of memory. */
sj_sums_cache *sj_sums_cache_new(size_t most_bytes);
void sj_sums_cache_free(sj_sums_cache *cache);

/* Returns the sums of exactly this block, or NULL. They stay valid until sj_sums_cache_release. */
const sj_block_sums *sj_sums_cache_hold(sj_sums_cache *cache, const sj_block_place *place);
void sj_sums_cache_release(sj_sums_cache *cache, const sj_block_sums *sums);

/* Stores a copy, unless there is no memory for it. */
void sj_sums_cache_put(sj_sums_cache *cache, const sj_block_sums *sums);

#endif
