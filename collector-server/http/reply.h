/* Responses: every one of them leaves through here and carries the security headers. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_REPLY_H
#define SJ_COLLECTOR_SERVER_HTTP_REPLY_H

#include "collector-server/http/assets.h"

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>

/* sj_reply_send adds the security headers, queues the response and releases it. */
enum MHD_Result sj_reply_send(struct MHD_Connection *connection, unsigned status,
                              struct MHD_Response *response);

/* sj_reply_make_json makes a response of a body (borrowed) that is never cached, compressed where
 * the client takes gzip; NULL: no memory. Any thread, also while the connection is suspended. */
struct MHD_Response *sj_reply_make_json(struct MHD_Connection *connection, unsigned status,
                                        const json_t *body);

/* sj_reply_make_text makes the same of JSON text, which it takes over: from malloc, freed also when
 * there is no memory. */
struct MHD_Response *sj_reply_make_text(struct MHD_Connection *connection, char *text);

/* sj_reply_make_error makes {"error": message}; `challenge` (NULL: none) is for 401. */
struct MHD_Response *sj_reply_make_error(struct MHD_Connection *connection, unsigned status,
                                         const char *message, const char *challenge);

/* sj_reply_login sends the error of 401. With `asks_password`, browsers ask their user for one. */
enum MHD_Result sj_reply_login(struct MHD_Connection *connection, const char *message,
                               bool asks_password);

/* sj_reply_error sends {"error": message}. */
enum MHD_Result sj_reply_error(struct MHD_Connection *connection, unsigned status,
                               const char *message);

/* sj_reply_asset sends an embedded file: gzip where accepted, 304 when its ETag is known. Where a
 * page of another site has led to it, it is sent whole, is not cached, and its header Server-Timing
 * says so: then the dashboard waits for its user before it asks for anything. */
enum MHD_Result sj_reply_asset(struct MHD_Connection *connection, const sj_asset *asset);

#endif
