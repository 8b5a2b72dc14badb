#include "collector-server/http/reply.h"

#include "collector-server/http/guard.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Shorter texts fit into one or two packets without compression. */
enum { COMPRESS_FROM_BYTES = 2048, COMPRESSION_LEVEL = 2, GZIP_WINDOW = 15 + 16 };

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

/* True if the client accepts gzip. Treats any weight that starts with 0 as a refusal, because the
 * plain form is always correct. */
static bool accepts_gzip(struct MHD_Connection *connection)
{
    const char *accepted =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    const char *found = accepted != NULL ? strstr(accepted, "gzip") : NULL;
    return found != NULL && strncmp(found, "gzip;q=0", 8) != 0;
}

/* Compresses a text with gzip, owned by the caller. Returns NULL on failure. */
static char *compress_text(const char *text, size_t size, size_t *compressed_size)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, COMPRESSION_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        return NULL;
    }
    const uLong bound = deflateBound(&stream, (uLong)size);
    char *bytes = size <= UINT32_MAX / 2 ? malloc(bound) : NULL;
    stream.next_in = (Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)size;
    stream.next_out = (Bytef *)bytes;
    stream.avail_out = (uInt)bound;
    const bool is_done = bytes != NULL && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    *compressed_size = stream.total_out;
    deflateEnd(&stream);
    if (!is_done) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* Creates a response from `text`, of which it takes ownership. */
static struct MHD_Response *make_text(char *text, bool may_compress)
{
    size_t size = strlen(text);
    size_t compressed_size = 0;
    char *compressed = may_compress && size >= COMPRESS_FROM_BYTES
                           ? compress_text(text, size, &compressed_size)
                           : NULL;
    if (compressed != NULL) {
        free(text);
        text = compressed;
        size = compressed_size;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
    } else if (compressed != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
    return response;
}

struct MHD_Response *sj_reply_make_text(struct MHD_Connection *connection, char *text)
{
    struct MHD_Response *response = make_text(text, accepts_gzip(connection));
    if (response != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    }
    return response;
}

static struct MHD_Response *make_json(struct MHD_Connection *connection, unsigned status,
                                      const json_t *body, const char *challenge)
{
    char *text = json_dumps(body, JSON_COMPACT);
    struct MHD_Response *response = text != NULL ? sj_reply_make_text(connection, text) : NULL;
    if (response == NULL) {
        return NULL;
    }
    if (challenge != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, challenge);
    }
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "2");
    }
    return response;
}

struct MHD_Response *sj_reply_make_json(struct MHD_Connection *connection, unsigned status,
                                        const json_t *body)
{
    return make_json(connection, status, body, NULL);
}

struct MHD_Response *sj_reply_make_error(struct MHD_Connection *connection, unsigned status,
                                         const char *message, const char *challenge)
{
    json_t *body = json_pack("{s:s%}", "error", message, strlen(message));
    if (body == NULL) {
        body = json_pack("{s:s}", "error", "the message cannot be shown");
    }
    struct MHD_Response *response = make_json(connection, status, body, challenge);
    json_decref(body);
    return response;
}

enum MHD_Result sj_reply_error(struct MHD_Connection *connection, unsigned status,
                               const char *message)
{
    return sj_reply_send(connection, status,
                         sj_reply_make_error(connection, status, message, NULL));
}

enum MHD_Result sj_reply_login(struct MHD_Connection *connection, const char *message,
                               bool asks_password)
{
    const char *challenge =
        asks_password ? "Basic realm=\"Sojourn\", charset=\"UTF-8\"" : "Bearer realm=\"Sojourn\"";
    return sj_reply_send(
        connection, MHD_HTTP_UNAUTHORIZED,
        sj_reply_make_error(connection, MHD_HTTP_UNAUTHORIZED, message, challenge));
}

static void add_asset_headers(struct MHD_Response *response, const sj_asset *asset, bool is_own)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, asset->etag);
    MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
    if (!is_own) {
        MHD_add_response_header(response, "Server-Timing", "foreign");
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                            !is_own            ? "no-store"
                            : asset->immutable ? "public, max-age=31536000, immutable"
                                               : "no-cache");
}

enum MHD_Result sj_reply_asset(struct MHD_Connection *connection, const sj_asset *asset)
{
    const char *known =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    const bool is_own = sj_guard_site_is_own(
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site"));
    if (is_own && known != NULL && strcmp(known, asset->etag) == 0) {
        struct MHD_Response *response =
            MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
        if (response != NULL) {
            add_asset_headers(response, asset, is_own);
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
    add_asset_headers(response, asset, is_own);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, asset->content_type);
    if (gzip) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
    return sj_reply_send(connection, MHD_HTTP_OK, response);
}
