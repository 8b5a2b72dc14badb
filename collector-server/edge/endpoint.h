/* An endpoint: one address that the edge listens on. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_ENDPOINT_H
#define SJ_COLLECTOR_SERVER_EDGE_ENDPOINT_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Where a peer comes from. */
typedef struct sj_edge_peer {
    uint8_t family; /* AF_INET, AF_INET6, AF_UNIX */
    uint16_t port;
    uint8_t address[16]; /* 4 of them for AF_INET */
} sj_edge_peer;

enum { SJ_EDGE_PEER_TEXT_BYTES = 64 };

/* sj_edge_peer_text writes an address for people; returns `text`. */
const char *sj_edge_peer_text(const sj_edge_peer *peer, char text[SJ_EDGE_PEER_TEXT_BYTES]);

typedef struct sj_endpoint {
    int descriptor; /* listening, non-blocking; -1: none */
    bool is_tls;
    bool is_ipc;
    char path[108]; /* of an ipc:// address, removed at the end; "": none */
} sj_endpoint;

/* sj_endpoint_is_url returns whether an address is for an endpoint: tcp://, tls+tcp://, ipc:// or
 * abstract://. */
bool sj_endpoint_is_url(const char *url);

/* sj_endpoint_open listens. Hosts may be names, "*", or IPv6 addresses in brackets. A socket file
 * that nobody answers at is replaced. May ask the resolver, which blocks. SJ_EINVAL: no such kind
 * of address; SJ_EEXIST: somebody listens there; SJ_EIO. */
SJ_MUST_CHECK sj_status sj_endpoint_open(sj_endpoint *endpoint, const char *url, sj_error *error);

/* sj_endpoint_accept takes the next connection, non-blocking, kept alive by TCP. -1: none now;
 * -2: this process has no descriptor left. */
int sj_endpoint_accept(const sj_endpoint *endpoint, sj_edge_peer *peer);

void sj_endpoint_close(sj_endpoint *endpoint);

#endif
