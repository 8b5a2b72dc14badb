/* Threads that make answers to requests. libmicrohttpd's own threads only move bytes. The
 * connection of a request is suspended while the answer is made, and then resumed.
 *
 * At most half of the threads make answers of routes that may be slow (sj_route.is_slow), so that
 * quick routes do not wait for slow ones. Work for a client that has disconnected is cancelled. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_REQUEST_POOL_H
#define SJ_COLLECTOR_SERVER_HTTP_REQUEST_POOL_H

#include "collector-server/http/post.h"
#include "collector-server/http/route.h"

#include <stdatomic.h>

typedef struct sj_request_pool sj_request_pool;

enum { SJ_REQUEST_THREADS = 8, SJ_REQUESTS_SLOW_AT_ONCE = 4 };

/* A request whose answer is to be made. The caller keeps it until the connection is resumed. */
typedef struct sj_request_job {
    sj_request request;
    const sj_route *route;
    const sj_post_body *posted; /* NULL: the request is a GET; borrowed */
    const char *refusal;        /* why the visitor's role forbids the request; NULL: it does not */
    unsigned status;            /* HTTP status; set when the answer is made */
    struct MHD_Response *response; /* the answer */
    struct sj_request_job *next;   /* used by the pool */
} sj_request_job;

/* Starts the threads. Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_request_pool_start(sj_request_pool **pool, sj_error *error);

/* Suspends the request's connection. A thread of the pool makes the answer, and then resumes the
 * connection. Returns false, without suspending, if the pool is stopping. Call it on the
 * connection's libmicrohttpd thread. */
bool sj_request_pool_add(sj_request_pool *pool, sj_request_job *job);

/* Returns the number of answers that were cancelled because their client had disconnected. */
uint64_t sj_request_pool_cancelled(const sj_request_pool *pool);

/* sj_request_pool_stop cancels the current work and resumes every connection. Later calls of
 * sj_request_pool_add return false. Call sj_request_pool_free after libmicrohttpd has ended; NULL
 * is allowed. */
void sj_request_pool_stop(sj_request_pool *pool);
void sj_request_pool_free(sj_request_pool *pool);

/* True if the client still waits for the answer to `request`, an sj_request, and the pool is not
 * stopping. Cheap enough for a call every millisecond. Call it on the thread that makes the answer.
 */
bool sj_request_is_wanted(void *request);

#endif
