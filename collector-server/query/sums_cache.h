/* The sums of blocks, kept in memory for the next question (block_sums.h): stored blocks do not
 * change, so the sums of a window are read from the blocks at its two ends and added up from those
 * in between. One for a database and all of its connections. Any thread. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SUMS_CACHE_H
#define SJ_COLLECTOR_SERVER_QUERY_SUMS_CACHE_H

#include "collector-server/query/block_sums.h"

typedef struct sj_sums_cache sj_sums_cache;

/* sj_sums_cache_new makes an empty one that holds `most_bytes`; beyond, what was not used for
 * longest goes. NULL: out of memory. */
sj_sums_cache *sj_sums_cache_new(size_t most_bytes);
void sj_sums_cache_free(sj_sums_cache *cache);

/* sj_sums_cache_hold gives the sums of exactly this block, or NULL. They stay until
 * sj_sums_cache_release. */
const sj_block_sums *sj_sums_cache_hold(sj_sums_cache *cache, const sj_block_place *place);
void sj_sums_cache_release(sj_sums_cache *cache, const sj_block_sums *sums);

/* sj_sums_cache_put keeps a copy, unless that needs more memory than there is. */
void sj_sums_cache_put(sj_sums_cache *cache, const sj_block_sums *sums);

#endif
