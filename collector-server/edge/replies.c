#include "collector-server/edge/replies.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { KEPT_CAPACITY = 256 << 10, FIRST_CAPACITY = 4096 };

sj_status sj_replies_init(sj_replies *replies)
{
    *replies = (sj_replies){.wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    pthread_mutex_init(&replies->lock, NULL);
    return replies->wake >= 0 ? SJ_OK : SJ_EIO;
}

void sj_replies_deinit(sj_replies *replies)
{
    if (replies->wake >= 0) {
        close(replies->wake);
    }
    pthread_mutex_destroy(&replies->lock);
    free(replies->filling.bytes);
    free(replies->collected.bytes);
}

static size_t rounded(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* Reserves memory for another answer. Returns NULL if out of memory. */
static uint8_t *reserve(sj_reply_arena *arena, size_t wanted)
{
    if (arena->end + wanted > arena->capacity) {
        size_t capacity = arena->capacity == 0 ? FIRST_CAPACITY : arena->capacity;
        while (capacity < arena->end + wanted) {
            capacity *= 2;
        }
        uint8_t *moved = realloc(arena->bytes, capacity);
        if (moved == NULL) {
            return NULL;
        }
        arena->bytes = moved;
        arena->capacity = capacity;
    }
    uint8_t *place = arena->bytes + arena->end;
    arena->end += wanted;
    return place;
}

void sj_replies_add(sj_replies *replies, uint64_t connection, bool is_last, const sj_slice parts[3])
{
    const size_t size = parts[0].size + parts[1].size + parts[2].size;
    const sj_reply head = {.connection = connection, .size = (uint32_t)size, .is_last = is_last};
    pthread_mutex_lock(&replies->lock);
    uint8_t *place = reserve(&replies->filling, sizeof(head) + rounded(size));
    if (place != NULL) {
        memcpy(place, &head, sizeof(head));
        place += sizeof(head);
        for (int i = 0; i < 3; i++) {
            if (parts[i].size != 0) {
                memcpy(place, parts[i].data, parts[i].size);
                place += parts[i].size;
            }
        }
    }
    pthread_mutex_unlock(&replies->lock);
}

void sj_replies_wake(sj_replies *replies)
{
    const uint64_t one = 1;
    /* fails if the counter is full; then the thread wakes anyway */
    (void)!write(replies->wake, &one, sizeof(one));
}

sj_slice sj_replies_collect(sj_replies *replies, bool *may_continue, bool *is_stopping)
{
    sj_reply_arena empty = replies->collected;
    if (empty.capacity > KEPT_CAPACITY) {
        free(empty.bytes);
        empty = (sj_reply_arena){0};
    }
    empty.end = 0;
    pthread_mutex_lock(&replies->lock);
    replies->collected = replies->filling;
    replies->filling = empty;
    *may_continue = replies->may_continue;
    replies->may_continue = false;
    *is_stopping = replies->is_stopping;
    pthread_mutex_unlock(&replies->lock);
    return (sj_slice){.data = replies->collected.bytes, .size = replies->collected.end};
}

const sj_reply *sj_reply_next(sj_slice *left)
{
    if (left->size == 0) {
        return NULL;
    }
    const sj_reply *reply = (const sj_reply *)(const void *)left->data;
    const size_t bytes = sizeof(*reply) + rounded(reply->size);
    left->data += bytes;
    left->size -= bytes;
    return reply;
}
