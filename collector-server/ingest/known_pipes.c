#include "collector-server/ingest/known_pipes.h"

#include <pthread.h>
#include <stdlib.h>

/* Ids rise by one from a random start, so the low bits spread them evenly. */
enum { BUCKETS = 1024 };

typedef struct known_pipe {
    uint32_t pipe;
    int64_t pass;
} known_pipe;

typedef struct bucket {
    known_pipe *pipes;
    uint32_t count;
    uint32_t capacity;
} bucket;

struct sj_known_pipes {
    pthread_mutex_t mutex;
    bucket buckets[BUCKETS];
};

sj_status sj_known_pipes_new(sj_known_pipes **pipes)
{
    sj_known_pipes *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    pthread_mutex_init(&made->mutex, NULL);
    *pipes = made;
    return SJ_OK;
}

void sj_known_pipes_free(sj_known_pipes *pipes)
{
    if (pipes == NULL) {
        return;
    }
    for (unsigned i = 0; i < BUCKETS; i++) {
        free(pipes->buckets[i].pipes);
    }
    pthread_mutex_destroy(&pipes->mutex);
    free(pipes);
}

/* place_of finds a pipe in its bucket; the bucket's count when it is not there. */
static uint32_t place_of(const bucket *own, uint32_t pipe)
{
    uint32_t at = 0;
    while (at < own->count && own->pipes[at].pipe != pipe) {
        at++;
    }
    return at;
}

static sj_status add_to(bucket *own, known_pipe added)
{
    const uint32_t at = place_of(own, added.pipe);
    if (at < own->count) {
        own->pipes[at] = added;
        return SJ_OK;
    }
    if (own->count == own->capacity) {
        const uint32_t wanted = own->capacity == 0 ? 4 : own->capacity * 2;
        known_pipe *moved = realloc(own->pipes, wanted * sizeof(*moved));
        if (moved == NULL) {
            return SJ_ENOMEM;
        }
        own->pipes = moved;
        own->capacity = wanted;
    }
    own->pipes[own->count++] = added;
    return SJ_OK;
}

sj_status sj_known_pipes_add(sj_known_pipes *pipes, uint32_t pipe, int64_t pass)
{
    const known_pipe added = {.pipe = pipe, .pass = pass};
    pthread_mutex_lock(&pipes->mutex);
    const sj_status status = add_to(&pipes->buckets[pipe % BUCKETS], added);
    pthread_mutex_unlock(&pipes->mutex);
    return status;
}

int64_t sj_known_pipes_pass(sj_known_pipes *pipes, uint32_t pipe)
{
    pthread_mutex_lock(&pipes->mutex);
    const bucket *own = &pipes->buckets[pipe % BUCKETS];
    const uint32_t at = place_of(own, pipe);
    const int64_t pass = at < own->count ? own->pipes[at].pass : 0;
    pthread_mutex_unlock(&pipes->mutex);
    return pass;
}

void sj_known_pipes_remove(sj_known_pipes *pipes, uint32_t pipe)
{
    pthread_mutex_lock(&pipes->mutex);
    bucket *own = &pipes->buckets[pipe % BUCKETS];
    const uint32_t at = place_of(own, pipe);
    if (at < own->count) {
        own->pipes[at] = own->pipes[--own->count];
    }
    pthread_mutex_unlock(&pipes->mutex);
}
