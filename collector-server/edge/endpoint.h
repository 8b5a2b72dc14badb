/* An endpoint: one address that the edge listens on. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_ENDPOINT_H
#define SJ_COLLECTOR_SERVER_EDGE_ENDPOINT_H

#include "proto/base/error.h"
#include "proto/base/socket_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* The address of a peer. */
typedef struct sj_edge_peer {
    uint8_t family; /* AF_INET, AF_INET6, AF_UNIX */
    uint16_t port;
    uint8_t address[16]; /* AF_INET uses 4 bytes */
} sj_edge_peer;

enum { SJ_EDGE_PEER_TEXT_BYTES = 64 };

/* Writes an address as text, and returns `text`. */
const char *sj_edge_peer_text(const sj_edge_peer *peer, char text[SJ_EDGE_PEER_TEXT_BYTES]);

typedef struct sj_endpoint {
    int descriptor; /* listening, non-blocking; -1: none */
    bool is_tls;
    bool is_ipc;
    sj_socket_file file; /* if is_ipc */
} sj_endpoint;

/* True if `url` begins with tcp://, tls+tcp://, ipc:// or abstract://. */
bool sj_endpoint_is_url(const char *url);

/* Starts listening. Hosts may be names, "*", or IPv6 addresses in brackets. Replaces a socket file
 * that has no server. May block in the resolver. Returns SJ_EINVAL for other kinds of address,
 * SJ_EEXIST if a server already listens there or the path is another kind of file, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_endpoint_open(sj_endpoint *endpoint, const char *url, sj_error *error);

/* Accepts the next connection. Returns its descriptor, non-blocking and with TCP keep-alive. Writes
 * the peer's address to `peer`. Returns -1 if there is no connection now, or -2 if the process or
 * the system has no free descriptor or memory. */
int sj_endpoint_accept(const sj_endpoint *endpoint, sj_edge_peer *peer);

void sj_endpoint_close(sj_endpoint *endpoint);

#endif
