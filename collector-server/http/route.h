/* A resource of the API: one file that exports one constant descriptor, listed in routes.c. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_ROUTE_H
#define SJ_COLLECTOR_SERVER_HTTP_ROUTE_H

#include "proto/base/error.h"

#include <jansson.h>
#include <microhttpd.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sj_http_context;

typedef struct sj_request {
    struct MHD_Connection *connection;
    struct sj_http_context *context;
    int64_t id;                /* what stands for {id} in the pattern; 0 when it has none */
    sqlite3 *database;         /* in a read transaction; NULL for routes without `run` */
    struct MHD_Response *file; /* made by `run` instead of a body; NULL: none */
    /* whether the client is still there (answer_pool.h) */
    int socket;
    uint64_t next_look_ms;
    bool is_left;
} sj_request;

typedef struct sj_route {
    const char *pattern;   /* exact path; one segment may be {id}, a positive decimal number */
    bool is_public;        /* read without the token, also beyond the loopback */
    bool is_slow;          /* may take longer than a blink: only some are answered at once */
    bool has_own_database; /* opens its own connection instead of `request->database` */

    /* JSON routes: makes the body (`*body` owned by the caller), or `request->file`. SJ_EINVAL
     * gives 400, SJ_ENOTFOUND 404, SJ_ETIMEDOUT and SJ_EAGAIN 503, anything else 500, with the
     * error's text. */
    sj_status (*run)(sj_request *request, json_t **body, sj_error *error);

    /* Other routes: queue a response of their own. */
    enum MHD_Result (*respond)(sj_request *request);

    /* POST, for routes that take one: `input` is the body (borrowed). Answers as `run` does, with
     * 202; the caller has shown the token. `request->database` is NULL. */
    sj_status (*post)(sj_request *request, const json_t *input, json_t **body, sj_error *error);
} sj_route;

/* sj_routes lists every route, NULL-terminated. */
extern const sj_route *const sj_routes[];

/* sj_route_match returns whether a decoded path is the pattern's; `*id` gets {id}, or 0. */
bool sj_route_match(const char *pattern, const char *path, int64_t *id);

/* sj_route_find returns the route of a path, or NULL. Any thread. */
const sj_route *sj_route_find(const char *path, int64_t *id);

#endif
