/* Ends connections that make no progress. libmicrohttpd's own timeout only detects silence: a peer
 * that sends a byte now and then could stay connected for ever.
 *
 * If there are too many connections, each new one displaces an old one, so that a request such as
 * /healthz always gets a connection. The displaced connection is the one that has been sending its
 * request longest. If no connection sends a request, it is the one that has been reading its
 * response longest, and at last the oldest event stream. If an address has too many connections,
 * its connections that are not streams are displaced first. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_CONNECTION_WATCH_H
#define SJ_COLLECTOR_SERVER_HTTP_CONNECTION_WATCH_H

#include "proto/base/status.h"

#include <microhttpd.h>
#include <stdint.h>

typedef struct sj_connection_watch sj_connection_watch;

enum {
    SJ_HTTP_CONNECTIONS_MAX = 128, /* if so many are open, a new connection displaces an old one */
    SJ_HTTP_CONNECTIONS_AT_ONCE = 512, /* including displaced ones that are still closing */
    /* above this, its connections are displaced first; IPv6: of a /64 */
    SJ_HTTP_CONNECTIONS_OF_ADDRESS = 32,
    SJ_HTTP_REQUEST_SECONDS = 10,  /* to send a whole request, including idle keep-alive time */
    SJ_HTTP_RESPONSE_SECONDS = 60, /* to read a whole response that is not an event stream */
};

/* Makes a watch without connections. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_connection_watch_new(sj_connection_watch **watch);
void sj_connection_watch_free(sj_connection_watch *watch);

/* An MHD_NotifyConnectionCallback. `context` is the watch. */
void sj_connection_watch_notify(void *context, struct MHD_Connection *connection,
                                void **socket_context, enum MHD_ConnectionNotificationCode code);

/* sj_connection_watch_answering notes that a whole request of the connection has arrived. If
 * `unlimited`, its response is an event stream, without a time limit. sj_connection_watch_answered
 * notes that the response was sent. */
void sj_connection_watch_answering(sj_connection_watch *watch, struct MHD_Connection *connection,
                                   int unlimited);
void sj_connection_watch_answered(sj_connection_watch *watch, struct MHD_Connection *connection);

/* Shuts down the sockets of connections whose time limit has passed. Call it about once a second.
 * Thread-safe, like all functions above. */
void sj_connection_watch_sweep(sj_connection_watch *watch, uint64_t now_ns);

#endif
