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
    /* The next three members are used by sj_request_is_wanted (request_pool.h). */
    int socket;
    uint64_t next_check_ms;
    bool is_left;
    /* The next four members are for the audit (audited.h); texts are borrowed. */
    const char *action; /* NULL: the request gets no row in the audit */
    const char *object; /* what the request changes or reads; of SQL: the statement */
    bool is_question;   /* the request runs SQL */
    bool is_refused;    /* the visitor's role, or an invalid body, forbids the POST */
} sj_request;

typedef struct sj_route {
    const char *pattern;   /* exact path; one segment may be {id}, a positive decimal number */
    bool is_public;        /* reading needs no token, even beyond the loopback */
    sj_role role;          /* the role that reading needs; SJ_ROLE_NONE: admin */
    sj_role post_role;     /* the role that a POST needs, if the route accepts one */
    const char *action;    /* the action of a POST in the audit; NULL: a POST changes nothing */
    bool is_slow;          /* may take a noticeable time: see request_pool.h */
    bool has_own_database; /* opens its own connection instead of `request->database` */

    /* JSON routes: creates the body (`*body`, owned by the caller), or `request->file`.
     * SJ_EINVAL, SJ_EUNSUPPORTED and SJ_ELIMIT become status 400, SJ_EPERM 403, SJ_ENOTFOUND
     * 404, SJ_ETIMEDOUT and SJ_EAGAIN 503, anything else 500. The response has the error's text. */
    sj_status (*run)(sj_request *request, json_t **body, sj_error *error);

    /* Routes whose response is not JSON: queues the response. */
    enum MHD_Result (*respond)(sj_request *request);

    /* Handles a POST, if the route accepts one. `input` is the body (borrowed). The response is
     * made as for `run`, with status 202. The client has `post_role`. request->database is NULL. */
    sj_status (*post)(sj_request *request, const json_t *input, json_t **body, sj_error *error);
} sj_route;

/* Returns SJ_EPERM, with a text that names the role, if the visitor of a request does not have the
 * role `role`. For requests that need a higher role than their route does. */
SJ_MUST_CHECK sj_status sj_request_needs(const sj_request *request, sj_role role, sj_error *error);

/* Writes a sentence that says that the visitor lacks a role. */
void sj_role_refusal(const sj_visitor *visitor, sj_role role, char *text, size_t size);

/* All routes, NULL-terminated. */
extern const sj_route *const sj_routes[];

/* True if a decoded path matches the pattern. Writes the value of {id} to `*id`, or 0 if the
 * pattern has no {id}. */
bool sj_route_match(const char *pattern, const char *path, int64_t *id);

/* Returns the route whose pattern a decoded path matches, or NULL. Sets `*id` as sj_route_match
 * does. Thread-safe. */
const sj_route *sj_route_find(const char *path, int64_t *id);

#endif
