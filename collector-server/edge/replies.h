/* Answers from any thread to the edge's thread. They are collected in one arena, which the edge's
 * thread takes as a whole. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_REPLIES_H
#define SJ_COLLECTOR_SERVER_EDGE_REPLIES_H

#include "proto/base/cursor.h"

#include <pthread.h>

typedef struct sj_reply {
    uint64_t connection;
    uint32_t size; /* size of the answer, which follows, padded to 8 bytes */
    bool is_last;
} sj_reply;

typedef struct sj_reply_arena {
    uint8_t *bytes;
    size_t end, capacity;
} sj_reply_arena;

typedef struct sj_replies {
    pthread_mutex_t lock;
    sj_reply_arena filling;   /* guarded by the lock */
    sj_reply_arena collected; /* used only by the edge's thread */
    bool may_continue, is_stopping;
    int wake; /* eventfd */
} sj_replies;

/* sj_replies_init returns SJ_EIO. Call sj_replies_deinit after all threads have ended. */
SJ_MUST_CHECK sj_status sj_replies_init(sj_replies *replies);
void sj_replies_deinit(sj_replies *replies);

/* Adds an answer made of three parts. Drops the answer if out of memory; the peer then asks
 * again. Thread-safe. */
void sj_replies_add(sj_replies *replies, uint64_t connection, bool is_last,
                    const sj_slice parts[3]);

/* Makes `wake` readable. Thread-safe. */
void sj_replies_wake(sj_replies *replies);

/* Returns all answers added since the previous call, valid until the next call. `*may_continue`
 * is true once after each sj_edge_resume. sj_reply_next iterates over the answers and returns
 * NULL at the end. Only on the edge's thread. */
sj_slice sj_replies_collect(sj_replies *replies, bool *may_continue, bool *is_stopping);
const sj_reply *sj_reply_next(sj_slice *left);

#endif
