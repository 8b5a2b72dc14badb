/* The edge: a server of the SP protocols (the REP side of REQ/REP) for untrusted peers.
 *
 * One thread owns every connection. It passes each whole message to the callback `handle`. Any
 * thread may send answers. Each connection has a number, its name, that no later connection gets.
 * So an answer to a closed connection is dropped, and nothing ever waits for a peer. sj_edge_limits
 * and README.md describe the limits of memory, descriptors and time per peer. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_EDGE_H
#define SJ_COLLECTOR_SERVER_EDGE_EDGE_H

#include "collector-server/edge/endpoint.h"
#include "collector-server/edge/sp_peer.h"
#include "collector-server/store/sender.h"

typedef struct sj_edge sj_edge;

/* A stranger is a connection that sj_edge_bind has not bound to a device. */
typedef struct sj_edge_limits {
    uint32_t connections; /* open at once; fewer if the process has few descriptors */
    uint32_t strangers;   /* maximum number of strangers among the connections */
    /* If an address (IPv6: a /64) has more, its strangers are displaced first. Not for ipc. */
    uint32_t strangers_per_address;
    uint32_t connections_per_device;
    /* With this many unanswered messages, a device's connection is not read. For a stranger the
     * limit is 1. */
    uint32_t pending;
    size_t message_bytes; /* a longer message closes the connection */
    /* A stranger's longer message is read and dropped; `handle` gets it without body, with `is_cut`
     * set. */
    size_t stranger_message_bytes;
    size_t stranger_bytes; /* a stranger that sends more in total is closed */
    size_t reply_bytes; /* unsent answers of a connection; above that, the connection is closed */
    /* Memory for devices' messages that are being read, or that `handle` has not accepted. If it is
     * used up, connections wait, except for one that may exceed it. */
    size_t reading_bytes;
    /* Memory for strangers' messages. If it is used up, a stranger that needs more is closed. */
    size_t stranger_reading_bytes;
    uint32_t greeting_ms; /* time until TLS handshake and greeting are done */
    uint32_t stranger_ms; /* a connection that is a stranger for longer is closed */
    /* maximum pause within a message or an answer; a whole message may take this time plus a second
     * for each 64 KB */
    uint32_t stall_ms;
    uint32_t grace_ms; /* age at which a stranger may be displaced by a newer one */
} sj_edge_limits;

/* The limits of sojournd. */
extern const sj_edge_limits sj_edge_default_limits;

/* A message with its reply address. It may be copied, but only one copy owns `memory`. */
typedef struct sj_edge_message {
    uint64_t connection; /* name of the connection */
    sj_sender sender;    /* zeroed except for `is_peer` if it is a stranger */
    sj_edge_peer peer;
    uint32_t bucket; /* hash of the peer's address: equal for messages of the same address */
    uint8_t way_back[SJ_SP_WAY_BACK_MAX_BYTES];
    uint8_t way_back_bytes;
    bool is_ipc;
    bool is_stranger;
    bool is_cut; /* too long for a stranger; the body is empty */
    uint8_t *memory;
    sj_slice body; /* points into `memory` */
} sj_edge_message;

typedef enum sj_edge_verdict {
    SJ_EDGE_ACCEPTED, /* `handle` now owns `memory` */
    /* The edge keeps the message, and passes it to `handle` again after sj_edge_resume, or a
     * quarter of a second later at most. Until then it does not read the connection. */
    SJ_EDGE_FULL,
    SJ_EDGE_HANG_UP /* the edge frees `memory` and closes the connection */
} sj_edge_verdict;

typedef struct sj_edge_options {
    const char *const *urls; /* tcp://, tls+tcp://, ipc://, abstract:// */
    size_t url_count;
    const char *certificate; /* for tls+tcp addresses (PEM), with its key; borrowed for the call */
    const char *key;
    const sj_edge_limits *limits; /* NULL: sj_edge_default_limits */
    /* Receives a message. Called on the edge's thread. */
    sj_edge_verdict (*handle)(void *context, sj_edge_message *message);
    void *context;
} sj_edge_options;

/* Listens and starts the thread. Sets `*edge` before it calls `handle`. Returns SJ_EINVAL,
 * SJ_EEXIST, SJ_EIO, SJ_ENOMEM, or SJ_ELIMIT for more than 16 addresses. */
SJ_MUST_CHECK sj_status sj_edge_start(const sj_edge_options *options, sj_edge **edge,
                                      sj_error *error);

/* Binds the connection of a message to a sender, so that it is not a stranger any more. Call it
 * only within `handle`. Returns SJ_ELIMIT if the device has too many connections, SJ_ENOTFOUND if
 * the connection has ended, or SJ_ENOMEM. After an error, the connection is a stranger. */
SJ_MUST_CHECK sj_status sj_edge_bind(sj_edge *edge, uint64_t connection, const sj_sender *sender);

/* Makes a connection a stranger again. Call it only within `handle`. */
void sj_edge_unbind(sj_edge *edge, uint64_t connection);

/* sj_edge_reply queues the answer to a message, and copies `body`. A message gets at most one
 * answer. If `is_last`, the connection is closed after the answer has been sent. Queued answers are
 * sent at the next sj_edge_flush, or when `handle` has returned. Thread-safe; both do not block. */
void sj_edge_reply(sj_edge *edge, const sj_edge_message *message, sj_slice body, bool is_last);
void sj_edge_flush(sj_edge *edge);

/* Passes messages to `handle` again for which it returned SJ_EDGE_FULL. Thread-safe. */
void sj_edge_resume(sj_edge *edge);

/* Sends the answers that can be sent at once, closes all connections, waits for the thread to
 * end, and frees the edge. NULL is allowed. */
void sj_edge_stop(sj_edge *edge);

typedef struct sj_edge_counters {
    uint64_t accepted;
    uint64_t displaced; /* strangers displaced by newer ones, or closed because their byte
                         * account was used up */
    uint64_t timed_out;
    uint64_t broken;   /* closed because of a protocol error, a TLS error, too many bytes,
                        * SJ_EDGE_HANG_UP, or lack of memory */
    uint64_t slow;     /* closed because they did not read their answers */
    uint64_t messages; /* messages that `handle` accepted */
    uint64_t late;     /* answers to closed connections */
    uint32_t open, strangers;
    size_t reading_bytes;
} sj_edge_counters;

/* Copies the counters, which are updated four times a second. Thread-safe. */
void sj_edge_get_counters(sj_edge *edge, sj_edge_counters *counters);

#endif
