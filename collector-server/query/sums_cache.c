#include "collector-server/query/sums_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 14 };

/* One allocation: the entry and all arrays of its sums. */
typedef struct entry {
    sj_block_sums sums; /* first member: a held pointer leads to the entry */
    size_t bytes;
    unsigned references;          /* references of the cache and of holders */
    struct entry *next_in_bucket; /* with the same hash */
    struct entry *newer, *older;  /* by use */
} entry;

struct sj_sums_cache {
    pthread_mutex_t lock; /* guards the members below and the references of entries */
    size_t bytes, most_bytes;
    entry *newest, *oldest;
    entry *buckets[BUCKETS];
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

static entry **bucket_of(sj_sums_cache *cache, const sj_block_place *place)
{
    return &cache->buckets[(uint64_t)place->block_id % BUCKETS];
}

static void release(entry *held)
{
    if (--held->references == 0) {
        free(held);
    }
}

static void unlink_entry(sj_sums_cache *cache, entry *held)
{
    *(held->newer != NULL ? &held->newer->older : &cache->newest) = held->older;
    *(held->older != NULL ? &held->older->newer : &cache->oldest) = held->newer;
}

static void put_in_front(sj_sums_cache *cache, entry *held)
{
    held->newer = NULL;
    held->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = held;
    cache->newest = held;
}

static void drop(sj_sums_cache *cache, entry *held)
{
    entry **place = bucket_of(cache, &held->sums.place);
    while (*place != held) {
        place = &(*place)->next_in_bucket;
    }
    *place = held->next_in_bucket;
    unlink_entry(cache, held);
    cache->bytes -= held->bytes;
    release(held);
}

void sj_sums_cache_free(sj_sums_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    while (cache->oldest != NULL) {
        drop(cache, cache->oldest);
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static bool is_same(const sj_block_place *a, const sj_block_place *b)
{
    return a->block_id == b->block_id && a->stream_id == b->stream_id &&
           a->first_call == b->first_call && a->first_ticks == b->first_ticks &&
           a->last_ticks == b->last_ticks;
}

static entry *find(sj_sums_cache *cache, const sj_block_place *place)
{
    entry *found = *bucket_of(cache, place);
    while (found != NULL && !is_same(&found->sums.place, place)) {
        found = found->next_in_bucket;
    }
    return found;
}

const sj_block_sums *sj_sums_cache_hold(sj_sums_cache *cache, const sj_block_place *place)
{
    pthread_mutex_lock(&cache->lock);
    entry *found = find(cache, place);
    if (found != NULL) {
        unlink_entry(cache, found);
        put_in_front(cache, found);
        ++found->references;
    }
    pthread_mutex_unlock(&cache->lock);
    return found != NULL ? &found->sums : NULL;
}

void sj_sums_cache_release(sj_sums_cache *cache, const sj_block_sums *sums)
{
    pthread_mutex_lock(&cache->lock);
    release((entry *)(void *)sums);
    pthread_mutex_unlock(&cache->lock);
}

static void *copy(uint8_t **space, const void *items, size_t bytes)
{
    void *copied = *space;
    if (bytes != 0) {
        memcpy(copied, items, bytes);
    }
    *space += bytes;
    return copied;
}

/* All arrays hold 8-byte numbers, except the last, which holds 4-byte ones. */
static entry *dup(const sj_block_sums *sums)
{
    const size_t frames = sums->frame_count * sizeof(*sums->frames);
    const size_t ends = sums->end_count * sizeof(*sums->ends);
    const size_t of_functions = sums->function_count * sizeof(*sums->sums);
    const size_t open = sums->open_count * sizeof(*sums->open);
    const size_t functions = sums->function_count * sizeof(*sums->functions);
    const size_t bytes = sizeof(entry) + frames + ends + of_functions + open + functions;
    entry *made = malloc(bytes);
    if (made == NULL) {
        return NULL;
    }
    uint8_t *space = (uint8_t *)(made + 1);
    *made = (entry){.sums = *sums, .bytes = bytes, .references = 1};
    made->sums.frames = copy(&space, sums->frames, frames);
    made->sums.ends = copy(&space, sums->ends, ends);
    made->sums.sums = copy(&space, sums->sums, of_functions);
    made->sums.open = copy(&space, sums->open, open);
    made->sums.functions = copy(&space, sums->functions, functions);
    return made;
}

void sj_sums_cache_put(sj_sums_cache *cache, const sj_block_sums *sums)
{
    entry *made = dup(sums);
    if (made == NULL) {
        return;
    }
    pthread_mutex_lock(&cache->lock);
    if (made->bytes > cache->most_bytes || find(cache, &sums->place) != NULL) {
        free(made);
    } else {
        while (cache->bytes + made->bytes > cache->most_bytes) {
            drop(cache, cache->oldest);
        }
        entry **place = bucket_of(cache, &sums->place);
        made->next_in_bucket = *place;
        *place = made;
        put_in_front(cache, made);
        cache->bytes += made->bytes;
    }
    pthread_mutex_unlock(&cache->lock);
}
