/* Creates and sends responses. Every response is sent by these functions, with the security
 * headers. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_REPLY_H
#define SJ_COLLECTOR_SERVER_HTTP_REPLY_H

#include "collector-server/http/assets.h"

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>

/* Adds the security headers, queues the response and releases it. */
enum MHD_Result sj_reply_send(struct MHD_Connection *connection, unsigned status,
                              struct MHD_Response *response);

/* Creates a response with a JSON body (borrowed). `status` is the status that the caller will send
 * it with. The response is never cached, and compressed if the client accepts gzip. Returns NULL if
 * out of memory. Thread-safe, also while the connection is suspended. */
struct MHD_Response *sj_reply_make_json(struct MHD_Connection *connection, unsigned status,
                                        const json_t *body);

/* Creates a response whose body is JSON text, as sj_reply_make_json does. Takes ownership of the
 * text, which is from malloc, even on failure. */
struct MHD_Response *sj_reply_make_text(struct MHD_Connection *connection, char *text);

/* Creates a response with the body {"error": message}. `challenge` is the header WWW-Authenticate
 * of status 401; NULL: no such header. */
struct MHD_Response *sj_reply_make_error(struct MHD_Connection *connection, unsigned status,
                                         const char *message, const char *challenge);

/* Sends the error 401. With `asks_password`, browsers ask their user for a password. */
enum MHD_Result sj_reply_login(struct MHD_Connection *connection, const char *message,
                               bool asks_password);

/* Sends a response with the body {"error": message}. */
enum MHD_Result sj_reply_error(struct MHD_Connection *connection, unsigned status,
                               const char *message);

/* Sends an embedded file: compressed if the client accepts gzip, or 304 if the client knows its
 * ETag. If a page of another site has linked to the file, never sends 304, and forbids
 * caching. The header Server-Timing then tells the dashboard to wait for its user before it
 * requests any data. */
enum MHD_Result sj_reply_asset(struct MHD_Connection *connection, const sj_asset *asset);

#endif
