/* Where frames come in: the edge for addresses that others can reach, and NNG's raw REP for
 * inproc://, by which a program speaks to the collector that it embeds. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_LISTENER_H
#define SJ_COLLECTOR_SERVER_INGEST_LISTENER_H

#include "collector-server/edge/edge.h"

#include <nng/nng.h>

typedef struct sj_listener sj_listener;

/* A message from either. */
typedef struct sj_inbound {
    sj_edge_message edge; /* `memory` is NULL for those of inproc:// */
    nng_msg *message;     /* NULL for those of the edge */
} sj_inbound;

typedef struct sj_listener_options {
    const char *const *urls;
    size_t url_count;
    const char *certificate; /* of tls+tcp addresses (PEM), with its key; borrowed for the call */
    const char *key;
    const sj_edge_limits *limits; /* NULL: the edge's own */
    /* takes a message, as sj_edge_options.take does; called in one thread for the edge, in another
     * for inproc:// */
    sj_edge_verdict (*take)(void *context, sj_inbound *inbound);
    void *context;
} sj_listener_options;

/* sj_listener_start: as sj_edge_start. */
SJ_MUST_CHECK sj_status sj_listener_start(const sj_listener_options *options,
                                          sj_listener **listener, sj_error *error);

/* sj_listener_edge borrows the edge; NULL: there is only inproc://. */
sj_edge *sj_listener_edge(sj_listener *listener);

/* sj_listener_reply answers a message; sj_listener_free_message frees it, answered or not. Answers
 * go out at the next sj_listener_flush at the latest. Any thread; does not block. */
void sj_listener_reply(sj_listener *listener, sj_inbound *inbound, sj_slice answer, bool is_last);
void sj_listener_free_message(sj_inbound *inbound);
void sj_listener_flush(sj_listener *listener);

/* sj_listener_go_on has messages that found the taker full offered again. */
void sj_listener_go_on(sj_listener *listener);

/* sj_listener_pause: from here on `take` is no longer called for inproc://. Before the last answers
 * are sent; sj_listener_stop: after them. */
void sj_listener_pause(sj_listener *listener);
void sj_listener_stop(sj_listener *listener);

/* sj_listener_answers sends a PING over a connection of its own to `url` and waits for the answer.
 * Blocking. Any thread. */
bool sj_listener_answers(const char *url, const char *certificate, int timeout_ms);

#endif
