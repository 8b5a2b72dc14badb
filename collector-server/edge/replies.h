/* Passes answers from any thread to the edge's thread. Threads append answers to an arena. The
 * edge's thread swaps it for an empty one and sends all of its answers. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_REPLIES_H
#define SJ_COLLECTOR_SERVER_EDGE_REPLIES_H

#include "proto/base/cursor.h"

#include <pthread.h>

typedef struct sj_reply {
    uint64_t connection;
    uint32_t size; /* size of the answer, whose bytes follow this structure, padded to 8 bytes */
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

/* sj_replies_init returns SJ_EIO if it cannot create `wake`. Call sj_replies_deinit after all
 * threads have ended. */
SJ_MUST_CHECK sj_status sj_replies_init(sj_replies *replies);
void sj_replies_deinit(sj_replies *replies);

/* Adds an answer that is the concatenation of three parts. Drops the answer if out of memory; the
 * peer then asks again. Thread-safe. */
void sj_replies_add(sj_replies *replies, uint64_t connection, bool is_last,
                    const sj_slice parts[3]);

/* Wakes the edge's thread: makes `wake` readable. Thread-safe. */
void sj_replies_wake(sj_replies *replies);

/* Returns all answers added since the previous call, valid until the next call. `*may_continue`
 * is true if sj_edge_resume was called since then. `*is_stopping` is true after sj_edge_stop.
 * sj_reply_next removes the first answer from `*left` and returns it, or NULL at the end. Call both
 * only on the edge's thread. */
sj_slice sj_replies_collect(sj_replies *replies, bool *may_continue, bool *is_stopping);
const sj_reply *sj_reply_next(sj_slice *left);

#endif
