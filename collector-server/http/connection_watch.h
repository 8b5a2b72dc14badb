/* Ends connections that hold a place without making progress. libmicrohttpd's own time-out is one
 * of silence: a peer that sends a byte now and then would keep its place for ever. And when there
 * are many, the one that has been sending its request for longest goes for each that comes, else
 * the one that has been reading for longest: who asks for /healthz finds a place at once. Those
 * of an address that has too many connections go before those of others, streams excepted. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_CONNECTION_WATCH_H
#define SJ_COLLECTOR_SERVER_HTTP_CONNECTION_WATCH_H

#include "proto/base/status.h"

#include <microhttpd.h>
#include <stdint.h>

typedef struct sj_connection_watch sj_connection_watch;

enum {
    SJ_HTTP_CONNECTIONS_MAX = 128,       /* beyond, older ones make way */
    SJ_HTTP_CONNECTIONS_AT_ONCE = 512,   /* until those have gone */
    SJ_HTTP_CONNECTIONS_OF_ADDRESS = 32, /* beyond, they make way first; IPv6: of a /64 */
    SJ_HTTP_REQUEST_SECONDS = 10,        /* to send a whole request, idle keep-alive included */
    SJ_HTTP_RESPONSE_SECONDS = 60,       /* to take a whole response that is no event stream */
};

SJ_MUST_CHECK sj_status sj_connection_watch_new(sj_connection_watch **watch);
void sj_connection_watch_free(sj_connection_watch *watch);

/* sj_connection_watch_notify is an MHD_NotifyConnectionCallback; `context` is the watch. */
void sj_connection_watch_notify(void *context, struct MHD_Connection *connection,
                                void **socket_context, enum MHD_ConnectionNotificationCode code);

/* sj_connection_watch_answering says that a whole request is there; `unlimited` for streams.
 * sj_connection_watch_answered, that its response is gone. */
void sj_connection_watch_answering(sj_connection_watch *watch, struct MHD_Connection *connection,
                                   int unlimited);
void sj_connection_watch_answered(sj_connection_watch *watch, struct MHD_Connection *connection);

/* sj_connection_watch_sweep shuts down the sockets of connections that are over time; call it
 * about once a second. Any thread, as all of the above. */
void sj_connection_watch_sweep(sj_connection_watch *watch, uint64_t now_ns);

#endif
