/* Shared by the edge's files only. Everything belongs to the edge's thread, except for `replies`,
 * which has its own lock, and `shown`, which is guarded by the same lock. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_EDGE_INTERNAL_H
#define SJ_COLLECTOR_SERVER_EDGE_EDGE_INTERNAL_H

#include "collector-server/edge/edge.h"
#include "collector-server/edge/line.h"
#include "collector-server/edge/replies.h"
#include "proto/base/hash_map.h"

#include <pthread.h>

#define SJ_EDGE_NOBODY UINT32_MAX

enum { SJ_EDGE_ENDPOINTS = 16, SJ_EDGE_BUCKETS = 4096, SJ_EDGE_SCRATCH_BYTES = 64 << 10 };

typedef enum sj_connection_state {
    SJ_CONNECTION_FREE,
    SJ_CONNECTION_SHAKING, /* in the TLS handshake */
    SJ_CONNECTION_GREETING,
    SJ_CONNECTION_OPEN
} sj_connection_state;

/* The two lists of strangers: those that have sent nothing yet, and those that have sent
 * something. */
enum { SJ_STRANGERS_SILENT, SJ_STRANGERS_HEARD, SJ_STRANGER_LISTS };

typedef struct sj_stranger_list {
    uint32_t oldest, newest, count;
} sj_stranger_list;

typedef struct sj_connection {
    sj_line line;
    sj_connection_state state;
    uint32_t generation, index;
    uint32_t older, newer; /* index of its neighbours in the list of strangers, or SJ_EDGE_NOBODY */
    uint32_t bucket;       /* bucket of its address */
    uint32_t wanted;       /* events that epoll currently waits for */
    bool is_stranger;
    bool is_heard;            /* it has sent something */
    bool is_blocked;          /* `handle` returned SJ_EDGE_FULL, or the byte account is used up */
    bool is_dirty;            /* in the edge's list of answered connections */
    bool is_closing;          /* it is closed once its output has been sent */
    uint32_t pending;         /* unanswered messages */
    int64_t since_ms;         /* time when it was accepted, or became a stranger again */
    int64_t read_ms, sent_ms; /* time of the last byte received, and of the last byte sent */
    int64_t begun_ms;         /* start of the message that is being read */
    uint64_t stranger_bytes;  /* bytes read while it was a stranger */
    sj_sender sender;
    sj_edge_peer peer;
    sj_sp_peer reader;
    sj_edge_message *held; /* a whole message that `handle` did not accept; owned */
    size_t held_charge;
    uint8_t *stash; /* bytes that were read but cannot be parsed yet; owned, charged */
    uint32_t stash_at, stash_end;
    uint8_t *out; /* output; owned */
    size_t out_at, out_end, out_capacity;
} sj_connection;

struct sj_edge {
    sj_edge_limits limits;
    sj_edge_verdict (*handle)(void *, sj_edge_message *);
    void *context;
    int epoll;
    sj_endpoint endpoints[SJ_EDGE_ENDPOINTS];
    unsigned endpoint_count;
    bool is_accepting; /* epoll watches the endpoints */
    bool has_identity;
    sj_line_identity identity;
    sj_connection *slots;
    uint32_t slots_used; /* slots from this index on were never used */
    uint32_t *free_slots, free_count;
    uint32_t *dirty, dirty_count;
    sj_stranger_list strangers[SJ_STRANGER_LISTS];
    uint32_t per_bucket[SJ_EDGE_BUCKETS];
    sj_hash_map devices; /* number of connections by device */
    sj_byte_account reading, stranger_reading;
    uint64_t grantee; /* name of the connection that may exceed the account; 0: none */
    int64_t now_ms;   /* time at the start of this turn of the loop */
    sj_edge_counters counters, shown;
    sj_replies replies;
    pthread_t thread;
    bool thread_started;
    uint8_t scratch[SJ_EDGE_SCRATCH_BYTES];
};

/* sj_connection_name returns the connection's name, which is never 0 and which no later connection
 * gets. sj_connection_of returns the open connection with that name, or NULL. */
uint64_t sj_connection_name(const sj_connection *connection);
sj_connection *sj_connection_of(sj_edge *edge, uint64_t name);

/* Closes a connection and frees its slot. All connections are closed by this function. Does not
 * block; drops unsent and unread data. */
void sj_connection_hang_up(sj_edge *edge, sj_connection *connection);

/* These four functions return false if the connection was closed during the call.
 * sj_connection_serve handles epoll events (0: parse bytes that were read before).
 * sj_connection_put queues bytes for sending. sj_connection_flush sends queued bytes as far as
 * possible now. sj_connection_offer passes the held message to `handle`. */
bool sj_connection_serve(sj_edge *edge, sj_connection *connection, uint32_t events);
bool sj_connection_put(sj_edge *edge, sj_connection *connection, sj_slice bytes);
bool sj_connection_flush(sj_edge *edge, sj_connection *connection);
bool sj_connection_offer(sj_edge *edge, sj_connection *connection);

/* Makes epoll wait for the events that the connection needs. */
void sj_connection_arm(sj_edge *edge, sj_connection *connection);

/* True if the edge may read from the connection now. False during the TLS handshake, while the
 * connection has too many unanswered messages, and while it is blocked or closing. */
bool sj_connection_may_read(const sj_edge *edge, const sj_connection *connection);

/* True if a time limit of the connection has passed. While the edge does not read the connection,
 * its time does not count: restarts the limits of a partly read message. */
bool sj_connection_is_overdue(const sj_edge *edge, sj_connection *connection);

/* sj_strangers_add and sj_strangers_remove maintain the lists. Each list has the order in which
 * its strangers were added to it. sj_strangers_mark_heard records that a connection has sent
 * something, and moves a stranger to the end of the other list. */
void sj_strangers_init(sj_edge *edge);
void sj_strangers_add(sj_edge *edge, sj_connection *connection);
void sj_strangers_mark_heard(sj_edge *edge, sj_connection *connection);
void sj_strangers_remove(sj_edge *edge, sj_connection *connection);

/* sj_strangers_are_full returns true if a new connection must displace a stranger.
 * sj_strangers_have_slot returns true if a new connection can be accepted now: it needs to displace
 * none, or the next one to displace is old enough (grace_ms).
 *
 * sj_strangers_next_to_go returns the next stranger to displace, or NULL if there are none. This
 * is the oldest stranger of an address over its limit, first in the larger of the two lists, then
 * in the other. If no address is over its limit, it is the oldest stranger of the larger list. */
bool sj_strangers_are_full(const sj_edge *edge);
bool sj_strangers_have_slot(sj_edge *edge);
sj_connection *sj_strangers_next_to_go(sj_edge *edge);

#endif
