/* The interface of a route: one file that defines one constant descriptor, listed in routes.c. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_ROUTE_H
#define SJ_COLLECTOR_SERVER_HTTP_ROUTE_H

#include "collector-server/http/login.h"
#include "proto/base/error.h"

#include <jansson.h>
#include <microhttpd.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sj_http_context;

enum { SJ_AUDITED_BYTES = 4096 };

typedef struct sj_request {
    struct MHD_Connection *connection;
    struct sj_http_context *context;
    sj_visitor visitor;
    int64_t id;        /* value of {id} in the pattern; 0 if there is none */
    sqlite3 *database; /* in a read transaction; set only for `run` without has_own_database */
    struct MHD_Response *file; /* set by `run` instead of a body; NULL: a body */
    /* for sj_request_is_wanted, which checks the client (request_pool.h) */
    int socket;
    uint64_t next_check_ms;
    bool is_left;
    /* for the audit (audited.h); borrowed */
    const char *action; /* NULL: the request is not in the audit */
    const char *object;
    bool is_question; /* it asks by SQL */
} sj_request;

typedef struct sj_route {
    const char *pattern;   /* exact path; one segment may be {id}, a positive decimal number */
    bool is_public;        /* reading needs no token, even beyond the loopback */
    sj_role role;          /* the role that reading needs; without one: admin */
    sj_role post_role;     /* the role that a POST needs, if the route accepts one */
    const char *action;    /* what the audit calls a POST; NULL: a POST changes nothing */
    bool is_slow;          /* may take a noticeable time, so few of these are answered at once */
    bool has_own_database; /* opens its own connection instead of `request->database` */

    /* JSON routes: creates the body (`*body`, owned by the caller), or `request->file`.
     * SJ_EINVAL, SJ_EUNSUPPORTED and SJ_ELIMIT become status 400, SJ_EPERM 403, SJ_ENOTFOUND
     * 404, SJ_ETIMEDOUT and SJ_EAGAIN 503, anything else 500. The response has the error's text. */
    sj_status (*run)(sj_request *request, json_t **body, sj_error *error);

    /* Other routes: queues a response. */
    enum MHD_Result (*respond)(sj_request *request);

    /* Handles a POST, if the route accepts one. `input` is the body (borrowed). Responds like
     * `run`, with status 202. The client has `post_role`. `request->database` is NULL. */
    sj_status (*post)(sj_request *request, const json_t *input, json_t **body, sj_error *error);
} sj_route;

/* Returns SJ_EPERM, with the role in the text, if the visitor of a request lacks a role. For
 * requests that need a higher role than their route. */
SJ_MUST_CHECK sj_status sj_request_needs(const sj_request *request, sj_role role, sj_error *error);

/* Writes the sentence about a role that a visitor lacks. */
void sj_role_refusal(const sj_visitor *visitor, sj_role role, char *text, size_t size);

/* All routes, NULL-terminated. */
extern const sj_route *const sj_routes[];

/* True if a decoded path matches the pattern. `*id` is the value of {id}, or 0. */
bool sj_route_match(const char *pattern, const char *path, int64_t *id);

/* Returns the route of a path, or NULL. Thread-safe. */
const sj_route *sj_route_find(const char *path, int64_t *id);

#endif
