#include "collector-server/query/sums_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 14 };

/* An entry and all arrays of its sums are in the same allocation. */
typedef struct cache_entry {
    sj_block_sums sums; /* first member: a pointer to the sums points to the entry */
    size_t bytes;
    unsigned references;                /* 1 for the cache, and 1 for each sj_sums_cache_hold */
    struct cache_entry *next_in_bucket; /* with the same hash */
    struct cache_entry *newer, *older;  /* neighbors in the order of last use */
} cache_entry;

struct sj_sums_cache {
    pthread_mutex_t lock; /* guards the members below and the references of entries */
    size_t bytes, most_bytes;
    cache_entry *newest, *oldest;
    cache_entry *buckets[BUCKETS];
};

sj_sums_cache *sj_sums_cache_new(size_t most_bytes)
{
    sj_sums_cache *cache = calloc(1, sizeof(*cache));
    if (cache != NULL) {
        pthread_mutex_init(&cache->lock, NULL);
        cache->most_bytes = most_bytes;
    }
    return cache;
}

static cache_entry **find_bucket(sj_sums_cache *cache, const sj_block_place *place)
{
    return &cache->buckets[(uint64_t)place->block_id % BUCKETS];
}

static void release(cache_entry *entry)
{
    if (--entry->references == 0) {
        free(entry);
    }
}

static void unlink_from_order(sj_sums_cache *cache, cache_entry *entry)
{
    *(entry->newer != NULL ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void put_newest(sj_sums_cache *cache, cache_entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static void remove_entry(sj_sums_cache *cache, cache_entry *entry)
{
    cache_entry **link = find_bucket(cache, &entry->sums.place);
    while (*link != entry) {
        link = &(*link)->next_in_bucket;
    }
    *link = entry->next_in_bucket;
    unlink_from_order(cache, entry);
    cache->bytes -= entry->bytes;
    release(entry);
}

void sj_sums_cache_free(sj_sums_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    while (cache->oldest != NULL) {
        remove_entry(cache, cache->oldest);
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static bool is_same_block(const sj_block_place *a, const sj_block_place *b)
{
    return a->block_id == b->block_id && a->stream_id == b->stream_id &&
           a->first_call == b->first_call && a->first_ticks == b->first_ticks &&
           a->last_ticks == b->last_ticks;
}

static cache_entry *find_entry(sj_sums_cache *cache, const sj_block_place *place)
{
    cache_entry *found = *find_bucket(cache, place);
    while (found != NULL && !is_same_block(&found->sums.place, place)) {
        found = found->next_in_bucket;
    }
    return found;
}

const sj_block_sums *sj_sums_cache_hold(sj_sums_cache *cache, const sj_block_place *place)
{
    pthread_mutex_lock(&cache->lock);
    cache_entry *found = find_entry(cache, place);
    if (found != NULL) {
        unlink_from_order(cache, found);
        put_newest(cache, found);
        ++found->references;
    }
    pthread_mutex_unlock(&cache->lock);
    return found != NULL ? &found->sums : NULL;
}

void sj_sums_cache_release(sj_sums_cache *cache, const sj_block_sums *sums)
{
    pthread_mutex_lock(&cache->lock);
    release((cache_entry *)(void *)sums);
    pthread_mutex_unlock(&cache->lock);
}

static void *append_copy(uint8_t **space, const void *items, size_t bytes)
{
    void *copied = *space;
    if (bytes != 0) {
        memcpy(copied, items, bytes);
    }
    *space += bytes;
    return copied;
}

/* Returns a copy of the sums, or NULL if out of memory. The arrays follow the entry. The last one
 * has 4-byte elements, the others have 8-byte elements, so all are aligned. */
static cache_entry *copy_sums(const sj_block_sums *sums)
{
    const size_t frames = sums->frame_count * sizeof(*sums->frames);
    const size_t ends = sums->end_count * sizeof(*sums->ends);
    const size_t function_sums = sums->function_count * sizeof(*sums->sums);
    const size_t open = sums->open_count * sizeof(*sums->open);
    const size_t functions = sums->function_count * sizeof(*sums->functions);
    const size_t bytes = sizeof(cache_entry) + frames + ends + function_sums + open + functions;
    cache_entry *entry = malloc(bytes);
    if (entry == NULL) {
        return NULL;
    }
    uint8_t *space = (uint8_t *)(entry + 1);
    *entry = (cache_entry){.sums = *sums, .bytes = bytes, .references = 1};
    entry->sums.frames = append_copy(&space, sums->frames, frames);
    entry->sums.ends = append_copy(&space, sums->ends, ends);
    entry->sums.sums = append_copy(&space, sums->sums, function_sums);
    entry->sums.open = append_copy(&space, sums->open, open);
    entry->sums.functions = append_copy(&space, sums->functions, functions);
    return entry;
}

void sj_sums_cache_put(sj_sums_cache *cache, const sj_block_sums *sums)
{
    cache_entry *entry = copy_sums(sums);
    if (entry == NULL) {
        return;
    }
    pthread_mutex_lock(&cache->lock);
    if (entry->bytes > cache->most_bytes || find_entry(cache, &sums->place) != NULL) {
        free(entry);
    } else {
        while (cache->bytes + entry->bytes > cache->most_bytes) {
            remove_entry(cache, cache->oldest);
        }
        cache_entry **bucket = find_bucket(cache, &sums->place);
        entry->next_in_bucket = *bucket;
        *bucket = entry;
        put_newest(cache, entry);
        cache->bytes += entry->bytes;
    }
    pthread_mutex_unlock(&cache->lock);
}
