/* Requests that change data: their checks and their bodies.
 *
 * A browser sends a password by itself, even with a request that a page of another site makes. So a
 * POST needs a JSON body, and the token in `Authorization: Bearer`, which pages of other sites do
 * not know. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_POST_H
#define SJ_COLLECTOR_SERVER_HTTP_POST_H

#include "collector-server/http/route.h"

enum { SJ_POST_MAX_BYTES = 256 * 1024 };

/* A body that is being received. Zeroed: empty. Its owner frees `bytes`. */
typedef struct sj_post_body {
    char *bytes;
    size_t size;
    bool is_too_long;
} sj_post_body;

/* Checks a POST before its body is read. Returns NULL if it is not refused. Else returns the
 * reason, which is constant or belongs to `login`, and writes the HTTP status to `*code`. */
const char *sj_post_refusal(const sj_login *login, const sj_visitor *visitor,
                            struct MHD_Connection *connection, unsigned *code);

/* Appends a piece. If the body becomes longer than SJ_POST_MAX_BYTES or memory runs out, drops
 * this piece and all later ones, and sets `is_too_long`. */
void sj_post_body_add(sj_post_body *body, const char *piece, size_t size);

/* Parses a body as a JSON object, which the caller releases. Returns SJ_EINVAL if the body is
 * empty, too long, or not a JSON object; the message names the position of a syntax error. */
SJ_MUST_CHECK sj_status sj_post_parse(const sj_post_body *body, json_t **object, sj_error *error);

#endif
