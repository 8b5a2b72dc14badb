/* Receives messages. The edge (edge.h) serves addresses that other processes can reach. A raw REP
 * socket of NNG serves inproc://, by which a program sends to a collector that it embeds. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_LISTENER_H
#define SJ_COLLECTOR_SERVER_INGEST_LISTENER_H

#include "collector-server/edge/edge.h"

#include <nng/nng.h>

typedef struct sj_listener sj_listener;

/* A message from the edge or from inproc://. */
typedef struct sj_inbound {
    sj_edge_message edge; /* `memory` is NULL if the message came by inproc:// */
    nng_msg *message;     /* NULL if the message came over the edge */
} sj_inbound;

typedef struct sj_listener_options {
    const char *const *urls;
    size_t url_count;
    const char *certificate; /* for tls+tcp addresses (PEM), with its key; borrowed for the call */
    const char *key;
    const sj_edge_limits *limits; /* NULL: the edge's defaults */
    /* Handles a message like sj_edge_options.handle. Called on one thread for the edge, and on
     * another one for inproc://. */
    sj_edge_verdict (*handle)(void *context, sj_inbound *inbound);
    void *context;
} sj_listener_options;

/* Starts listening. Sets `*listener` before it calls `handle`. Errors are those of
 * sj_edge_start. */
SJ_MUST_CHECK sj_status sj_listener_start(const sj_listener_options *options,
                                          sj_listener **listener, sj_error *error);

/* Returns the edge, borrowed, or NULL if there are only inproc:// addresses. */
sj_edge *sj_listener_edge(sj_listener *listener);

/* sj_listener_reply answers a message. For inproc://, it blocks for at most 100 ms. For the edge,
 * it queues the answer, which is sent at the next sj_listener_flush at the latest.
 * sj_listener_free_message frees a message, answered or not. Thread-safe. */
void sj_listener_reply(sj_listener *listener, sj_inbound *inbound, sj_slice reply, bool is_last);
void sj_listener_free_message(sj_inbound *inbound);
void sj_listener_flush(sj_listener *listener);

/* Passes messages to `handle` again for which it returned SJ_EDGE_FULL. */
void sj_listener_resume(sj_listener *listener);

/* sj_listener_pause ends the calls of `handle` for inproc://. Call it before the last replies.
 * sj_listener_stop stops listening and frees the listener. Call it after the last replies. NULL
 * is allowed. */
void sj_listener_pause(sj_listener *listener);
void sj_listener_stop(sj_listener *listener);

#endif
