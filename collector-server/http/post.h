/* Requests that change something: what they have to bring, and their bodies.
 *
 * A browser may send a password without being asked by a page. So a POST needs the token in
 * `Authorization: Bearer`, which no page of another site knows, and a body of JSON. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_POST_H
#define SJ_COLLECTOR_SERVER_HTTP_POST_H

#include "collector-server/http/login.h"
#include "collector-server/http/route.h"

enum { SJ_POST_MAX_BYTES = 256 * 1024 };

/* A body that is being received; `bytes` are its holder's to free. */
typedef struct sj_post_body {
    char *bytes;
    size_t size;
    bool is_too_long;
} sj_post_body;

/* sj_post_refusal returns what is wrong with a POST before its body is read, and its HTTP status;
 * NULL: nothing. The text is constant, or `login`'s. */
const char *sj_post_refusal(const sj_login *login, struct MHD_Connection *connection,
                            unsigned *code);

/* sj_post_body_add takes in a piece; what is too long is dropped and sets `is_too_long`. */
void sj_post_body_add(sj_post_body *body, const char *piece, size_t size);

/* sj_post_parse reads a body as a JSON object, released by the caller. SJ_EINVAL with the place of
 * the mistake. */
SJ_MUST_CHECK sj_status sj_post_parse(const sj_post_body *body, json_t **object, sj_error *error);

#endif
