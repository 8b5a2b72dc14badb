/* The edge: a server of the SP protocols (the REP of REQ/REP) for peers that nobody vouches for.
 *
 * One thread owns every connection. It hands whole messages to `take`, in that thread, and answers
 * come back from any thread. A connection has a name that is never used again: an answer to one
 * that is gone is dropped, and nothing ever waits for a peer. What a peer can take of memory,
 * descriptors and time is bounded, see sj_edge_limits and README.md. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_EDGE_H
#define SJ_COLLECTOR_SERVER_EDGE_EDGE_H

#include "collector-server/edge/endpoint.h"
#include "collector-server/edge/sp_peer.h"
#include "collector-server/store/sender.h"

typedef struct sj_edge sj_edge;

/* A stranger is a connection that was not bound to a device. */
typedef struct sj_edge_limits {
    uint32_t connections;           /* open at once; fewer where descriptors are few */
    uint32_t strangers;             /* of them */
    uint32_t strangers_per_address; /* an address that has more gives way first; IPv6: a /64 */
    uint32_t connections_per_device;
    uint32_t pending;              /* messages of a connection without an answer; then not read */
    size_t message_bytes;          /* longer: hung up */
    size_t stranger_message_bytes; /* longer: read, dropped and handed out as `is_cut` */
    size_t stranger_bytes;         /* that a stranger may send in all */
    size_t reply_bytes;            /* unsent answers of a connection; beyond: hung up */
    size_t reading_bytes;          /* messages of devices that are being read or were not taken */
    size_t stranger_reading_bytes; /* the same of strangers; beyond: hung up */
    uint32_t greeting_ms;          /* until TLS and greeting are done */
    uint32_t stranger_ms;          /* until bound */
    uint32_t stall_ms; /* without a byte of a message or answer that has begun; a whole message may
                          take that and a second for each 64 KB */
    uint32_t grace_ms; /* age at which a stranger may be hung up for a newer one */
} sj_edge_limits;

/* sj_edge_default_limits are those of sojournd. */
extern const sj_edge_limits sj_edge_default_limits;

/* A message and the way back of its answer. Copies are as good as the original, but for `memory`,
 * which has one owner. */
typedef struct sj_edge_message {
    uint64_t connection;
    sj_sender sender; /* zeroed but for `is_peer`: a stranger's */
    sj_edge_peer peer;
    uint32_t bucket; /* the same for messages of one address */
    uint8_t way_back[SJ_SP_WAY_BACK_MAX_BYTES];
    uint8_t way_back_bytes;
    bool is_ipc;
    bool is_stranger;
    bool is_cut; /* too long for a stranger; the body is empty */
    uint8_t *memory;
    sj_slice body; /* in `memory` */
} sj_edge_message;

typedef enum sj_edge_verdict {
    SJ_EDGE_TAKEN, /* `memory` has a new owner */
    SJ_EDGE_FULL, /* asked again after sj_edge_go_on, or later; the connection is not read meanwhile
                   */
    SJ_EDGE_HANG_UP
} sj_edge_verdict;

typedef struct sj_edge_options {
    const char *const *urls; /* tcp://, tls+tcp://, ipc://, abstract:// */
    size_t url_count;
    const char *certificate; /* of tls+tcp addresses (PEM), with its key; borrowed for the call */
    const char *key;
    const sj_edge_limits *limits; /* NULL: sj_edge_default_limits */
    sj_edge_verdict (*take)(void *context, sj_edge_message *message); /* in the edge's thread */
    void *context;
} sj_edge_options;

/* sj_edge_start listens and starts the thread; `*edge` is set before `take` is called. SJ_EINVAL,
 * SJ_EEXIST, SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_edge_start(const sj_edge_options *options, sj_edge **edge,
                                      sj_error *error);

/* sj_edge_bind makes the connection of a message that of a sender: no stranger any more. Only
 * within `take`. SJ_ELIMIT: the device has too many connections; SJ_ENOTFOUND: it is gone. */
SJ_MUST_CHECK sj_status sj_edge_bind(sj_edge *edge, uint64_t connection, const sj_sender *sender);

/* sj_edge_unbind makes it a stranger's again. Only within `take`. */
void sj_edge_unbind(sj_edge *edge, uint64_t connection);

/* sj_edge_reply sends an answer, of which every message wants one at most; with `is_last` the
 * connection ends after it. Copies the body. Any thread; does not block. Answers go out at the next
 * sj_edge_flush, or when `take` has returned. */
void sj_edge_reply(sj_edge *edge, const sj_edge_message *message, sj_slice body, bool is_last);
void sj_edge_flush(sj_edge *edge);

/* sj_edge_go_on has messages that found the taker full offered again. Any thread. */
void sj_edge_go_on(sj_edge *edge);

/* sj_edge_stop sends what can be sent at once, hangs up on everybody and frees the edge. */
void sj_edge_stop(sj_edge *edge);

typedef struct sj_edge_counters {
    uint64_t accepted;
    uint64_t displaced; /* strangers that made room for newer ones */
    uint64_t timed_out;
    uint64_t broken;   /* no SP, no TLS, too long */
    uint64_t slow;     /* did not read their answers */
    uint64_t messages; /* taken */
    uint64_t late;     /* answers to connections that were gone */
    uint32_t open, strangers;
    size_t reading_bytes;
} sj_edge_counters;

/* sj_edge_get_counters is up to a quarter of a second behind. Any thread. */
void sj_edge_get_counters(sj_edge *edge, sj_edge_counters *counters);

#endif
