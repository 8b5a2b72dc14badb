#include "collector-server/http/post.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    return type != NULL && strncasecmp(type, json, sizeof(json) - 1) == 0 &&
           (type[sizeof(json) - 1] == '\0' || type[sizeof(json) - 1] == ';');
}

const char *sj_post_refusal(const sj_login *login, const sj_visitor *visitor,
                            struct MHD_Connection *connection, unsigned *code)
{
    const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (!visitor->is_bearer) {
        *code = MHD_HTTP_UNAUTHORIZED;
        return login->refusal;
    }
    if (!is_json(header_of(connection, MHD_HTTP_HEADER_CONTENT_TYPE))) {
        *code = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
        return "the body has to be application/json";
    }
    if (length == NULL || header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL) {
        *code = MHD_HTTP_LENGTH_REQUIRED;
        return "the request needs a Content-Length";
    }
    if (strlen(length) > 6 || strtoul(length, NULL, 10) > SJ_POST_MAX_BYTES) {
        *code = MHD_HTTP_CONTENT_TOO_LARGE;
        return "the body is longer than 256 KiB";
    }
    return NULL;
}

void sj_post_body_add(sj_post_body *body, const char *piece, size_t size)
{
    char *grown = !body->is_too_long && size <= SJ_POST_MAX_BYTES - body->size
                      ? realloc(body->bytes, body->size + size)
                      : NULL;
    if (grown == NULL) {
        body->is_too_long = true;
        return;
    }
    memcpy(grown + body->size, piece, size);
    body->bytes = grown;
    body->size += size;
}

sj_status sj_post_parse(const sj_post_body *body, json_t **object, sj_error *error)
{
    json_error_t problem = {0};
    if (body->is_too_long || body->size == 0) {
        return sj_fail(error, SJ_EINVAL, "the body is %s",
                       body->is_too_long ? "too long" : "empty; it has to be a JSON object");
    }
    json_t *read = json_loadb(body->bytes, body->size, JSON_REJECT_DUPLICATES, &problem);
    if (!json_is_object(read)) {
        json_decref(read);
        return read != NULL ? sj_fail(error, SJ_EINVAL, "the body is not a JSON object")
                            : sj_fail(error, SJ_EINVAL, "the body, line %d, column %d: %s",
                                      problem.line, problem.column, problem.text);
    }
    *object = read;
    return SJ_OK;
}
