/* Answers on their way from any thread to the edge's: one arena, taken as a whole. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_REPLIES_H
#define SJ_COLLECTOR_SERVER_EDGE_REPLIES_H

#include "proto/base/cursor.h"

#include <pthread.h>

typedef struct sj_reply {
    uint64_t connection;
    uint32_t size; /* of its bytes, which follow, rounded up to 8 */
    bool is_last;
} sj_reply;

typedef struct sj_reply_arena {
    uint8_t *bytes;
    size_t end, room;
} sj_reply_arena;

typedef struct sj_replies {
    pthread_mutex_t lock;
    sj_reply_arena filling; /* under the lock */
    sj_reply_arena taken;   /* of the edge's thread */
    bool goes_on, is_stopping;
    int wake; /* eventfd */
} sj_replies;

/* sj_replies_init makes an empty one; SJ_EIO. sj_replies_deinit: after all threads. */
SJ_MUST_CHECK sj_status sj_replies_init(sj_replies *replies);
void sj_replies_deinit(sj_replies *replies);

/* sj_replies_add puts an answer of three parts. Without memory it is dropped: its sender asks
 * again. Any thread. */
void sj_replies_add(sj_replies *replies, uint64_t connection, bool is_last,
                    const sj_slice parts[3]);

/* sj_replies_wake makes `wake` readable. Any thread. */
void sj_replies_wake(sj_replies *replies);

/* sj_replies_take gives all that came, valid until the next call; walked by sj_reply_next, which
 * returns NULL at the end. The edge's thread. */
sj_slice sj_replies_take(sj_replies *replies, bool *goes_on, bool *is_stopping);
const sj_reply *sj_reply_next(sj_slice *left);

#endif
