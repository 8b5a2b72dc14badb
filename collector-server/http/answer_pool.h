/* Threads that make answers, so that libmicrohttpd's own threads only move bytes: a request whose
 * answer is being made is suspended and resumed when it is there.
 *
 * Of the threads at most half make answers of routes that may be slow (sj_route.is_slow), so that a
 * small one never waits for them alone. Work for a client that has left is given up. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_ANSWER_POOL_H
#define SJ_COLLECTOR_SERVER_HTTP_ANSWER_POOL_H

#include "collector-server/http/post.h"
#include "collector-server/http/route.h"

#include <stdatomic.h>

typedef struct sj_answer_pool sj_answer_pool;

enum { SJ_ANSWER_THREADS = 8, SJ_ANSWER_SLOW_AT_ONCE = 4 };

/* An answer that is asked for; kept by the caller until it is made. */
typedef struct sj_answer {
    sj_request request;
    const sj_route *route;
    const sj_post_body *posted; /* NULL: a GET; borrowed */
    unsigned status;            /* when it is made */
    struct MHD_Response *response;
    struct sj_answer *next;
} sj_answer;

SJ_MUST_CHECK sj_status sj_answer_pool_start(sj_answer_pool **pool, sj_error *error);

/* sj_answer_pool_ask suspends the request's connection and has the answer made; the connection is
 * resumed then. false: the pool is stopping, and nothing was suspended. In the thread of
 * libmicrohttpd that the connection belongs to. */
bool sj_answer_pool_ask(sj_answer_pool *pool, sj_answer *answer);

/* sj_answer_pool_cancelled returns how many answers were given up because their client had left. */
uint64_t sj_answer_pool_cancelled(const sj_answer_pool *pool);

/* sj_answer_pool_stop ends what is being made and resumes every connection; requests to come are
 * refused. sj_answer_pool_free comes after libmicrohttpd has ended; NULL is allowed. */
void sj_answer_pool_stop(sj_answer_pool *pool);
void sj_answer_pool_free(sj_answer_pool *pool);

/* sj_answer_goes_on returns whether somebody still waits for the answer that this request is about.
 * Cheap enough to be asked every millisecond. In the thread that makes it. */
bool sj_answer_goes_on(void *request);

#endif
