/* A listening address that is watched: NNG 1.5.2 stops accepting for ever when one connection
 * breaks at the wrong moment (its bug #1518: ECLOSED in the negotiation counts as the listener's
 * own end). The watchdog dials it as a client would and re-creates it when no answer comes;
 * connections that exist belong to the socket and survive. */
#ifndef SJ_COLLECTOR_INGEST_LISTENER_H
#define SJ_COLLECTOR_INGEST_LISTENER_H

#include "agent/control/error.h"

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>
#include <stdbool.h>

typedef struct sj_listener {
    nng_socket socket; /* borrowed */
    nng_listener listener;
    char *url;
    bool listening;
    nng_tls_config *tls;     /* borrowed; NULL: plain */
    const char *certificate; /* what the watchdog trusts; borrowed */
} sj_listener;

/* sj_listener_open listens; `tls` and `certificate` are for tls+tcp URLs and borrowed until the
 * listener is closed. */
SJ_MUST_CHECK sj_status sj_listener_open(sj_listener *listener, nng_socket socket, const char *url,
                                         nng_tls_config *tls, const char *certificate,
                                         sj_error *error);

/* sj_listener_answers sends a PING over a new connection and waits for the answer. Blocking. */
bool sj_listener_answers(const sj_listener *listener, int timeout_ms);

/* sj_listener_recreate closes and listens again; false when the address cannot be had (try again).
 */
bool sj_listener_recreate(sj_listener *listener);

/* sj_listener_needs_watch is false for inproc addresses, which cannot break. */
bool sj_listener_needs_watch(const sj_listener *listener);

void sj_listener_close(sj_listener *listener);

#endif
