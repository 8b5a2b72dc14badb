#include "collector-server/http/reply.h"

#include <stdlib.h>
#include <string.h>

static const char *const security_headers[][2] = {
    {"Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                                "form-action 'none'; object-src 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

enum MHD_Result sj_reply_send(struct MHD_Connection *connection, unsigned status,
                              struct MHD_Response *response)
{
    if (response == NULL) {
        return MHD_NO;
    }
    for (size_t i = 0; i < sizeof(security_headers) / sizeof(security_headers[0]); i++) {
        MHD_add_response_header(response, security_headers[i][0], security_headers[i][1]);
    }
    const enum MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result send_json(struct MHD_Connection *connection, unsigned status,
                                 const json_t *body, const char *challenge)
{
    char *text = json_dumps(body, JSON_COMPACT);
    if (text == NULL) {
        return MHD_NO;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (challenge != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, challenge);
    }
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "2");
    }
    return sj_reply_send(connection, status, response);
}

enum MHD_Result sj_reply_json(struct MHD_Connection *connection, unsigned status,
                              const json_t *body)
{
    return send_json(connection, status, body, NULL);
}

static enum MHD_Result send_error(struct MHD_Connection *connection, unsigned status,
                                  const char *message, const char *challenge)
{
    json_t *body = json_pack("{s:s%}", "error", message, strlen(message));
    if (body == NULL) {
        body = json_pack("{s:s}", "error", "the message cannot be shown");
    }
    const enum MHD_Result queued = send_json(connection, status, body, challenge);
    json_decref(body);
    return queued;
}

enum MHD_Result sj_reply_error(struct MHD_Connection *connection, unsigned status,
                               const char *message)
{
    return send_error(connection, status, message, NULL);
}

enum MHD_Result sj_reply_login(struct MHD_Connection *connection, const char *message)
{
    return send_error(connection, MHD_HTTP_UNAUTHORIZED, message,
                      "Basic realm=\"Sojourn\", charset=\"UTF-8\"");
}

/* Is gzip among the codings that a peer accepts? Any weight that starts with 0 is taken for a
 * refusal: the plain form is always right. */
static bool accepts_gzip(struct MHD_Connection *connection)
{
    const char *accepted =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    const char *found = accepted != NULL ? strstr(accepted, "gzip") : NULL;
    return found != NULL && strncmp(found, "gzip;q=0", 8) != 0;
}

static void add_asset_headers(struct MHD_Response *response, const sj_asset *asset)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, asset->etag);
    MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                            asset->immutable ? "public, max-age=31536000, immutable" : "no-cache");
}

enum MHD_Result sj_reply_asset(struct MHD_Connection *connection, const sj_asset *asset)
{
    const char *known =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    if (known != NULL && strcmp(known, asset->etag) == 0) {
        struct MHD_Response *response =
            MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
        if (response != NULL) {
            add_asset_headers(response, asset);
        }
        return sj_reply_send(connection, MHD_HTTP_NOT_MODIFIED, response);
    }
    const bool gzip = accepts_gzip(connection);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        gzip ? asset->gzip_size : asset->size, (void *)(gzip ? asset->gzip_data : asset->data),
        MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        return MHD_NO;
    }
    add_asset_headers(response, asset);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, asset->content_type);
    if (gzip) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
    return sj_reply_send(connection, MHD_HTTP_OK, response);
}
