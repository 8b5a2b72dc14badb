/* Sums cache: keeps the sums of blocks (block_sums.h) in memory for later queries. Stored blocks do
 * not change, so their sums stay valid. A query over a time window then reads only the blocks at
 * both ends of the window. A cache serves all connections of a database. Thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SUMS_CACHE_H
#define SJ_COLLECTOR_SERVER_QUERY_SUMS_CACHE_H

#include "collector-server/query/block_sums.h"

typedef struct sj_sums_cache sj_sums_cache;

/* Returns an empty cache of at most `most_bytes`. A full cache removes the least recently used
 * sums. Returns NULL if out of memory. */
sj_sums_cache *sj_sums_cache_new(size_t most_bytes);
void sj_sums_cache_free(sj_sums_cache *cache); /* NULL is allowed */

/* Returns the sums of the block at `place`, or NULL if the cache lacks them. The sums stay valid
 * until the caller calls sj_sums_cache_release. */
const sj_block_sums *sj_sums_cache_hold(sj_sums_cache *cache, const sj_block_place *place);
void sj_sums_cache_release(sj_sums_cache *cache, const sj_block_sums *sums);

/* Stores a copy of the sums. Stores nothing if out of memory, or if the sums are larger than the
 * cache or in it already. */
void sj_sums_cache_put(sj_sums_cache *cache, const sj_block_sums *sums);

#endif
