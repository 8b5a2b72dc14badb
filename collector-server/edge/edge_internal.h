/* The edge's parts know each other by this; nobody else includes it. All of it belongs to the
 * edge's thread but for `replies`, which has a lock, and `shown`, which is under it. */
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
    SJ_CONNECTION_SHAKING, /* TLS */
    SJ_CONNECTION_GREETING,
    SJ_CONNECTION_OPEN
} sj_connection_state;

/* Strangers that have sent nothing yet, and those that have. */
enum { SJ_STRANGERS_SILENT, SJ_STRANGERS_HEARD, SJ_STRANGER_LISTS };

typedef struct sj_stranger_list {
    uint32_t oldest, newest, count;
} sj_stranger_list;

typedef struct sj_connection {
    sj_line line;
    sj_connection_state state;
    uint32_t generation, index;
    uint32_t older, newer; /* in its list of strangers */
    uint32_t bucket;       /* of its address */
    uint32_t wanted;       /* epoll's events at present */
    bool is_stranger;
    bool is_heard;            /* it has sent something; of strangers */
    bool is_blocked;          /* the taker is full, or the account */
    bool is_dirty;            /* in the list of those that were answered */
    bool is_closing;          /* after what is to be sent */
    uint32_t pending;         /* messages without an answer */
    int64_t since_ms;         /* accepted, or bound */
    int64_t read_ms, sent_ms; /* last byte in, last byte out */
    int64_t begun_ms;         /* of the message that is being read */
    uint64_t stranger_bytes;  /* read while a stranger */
    sj_sender sender;
    sj_edge_peer peer;
    sj_sp_peer reader;
    sj_edge_message *held; /* whole, but the taker is full; owned */
    size_t held_charge;
    uint8_t *stash; /* read, but may not be looked at now; owned, charged */
    uint32_t stash_at, stash_end;
    uint8_t *out; /* to be sent; owned */
    size_t out_at, out_end, out_room;
} sj_connection;

struct sj_edge {
    sj_edge_limits limits;
    sj_edge_verdict (*take)(void *, sj_edge_message *);
    void *context;
    int epoll;
    sj_endpoint endpoints[SJ_EDGE_ENDPOINTS];
    unsigned endpoint_count;
    bool is_accepting; /* endpoints are watched */
    bool has_identity;
    sj_line_identity identity;
    sj_connection *slots;
    uint32_t slots_used; /* those beyond were never used */
    uint32_t *free_slots, free_count;
    uint32_t *dirty, dirty_count;
    sj_stranger_list strangers[SJ_STRANGER_LISTS];
    uint32_t per_bucket[SJ_EDGE_BUCKETS];
    sj_hash_map devices; /* connections of each */
    sj_byte_account reading, stranger_reading;
    uint64_t grantee; /* the connection that may exceed the account; 0: none */
    int64_t now_ms;   /* as of this turn of the loop */
    sj_edge_counters counters, shown;
    sj_replies replies;
    pthread_t thread;
    bool thread_started;
    uint8_t scratch[SJ_EDGE_SCRATCH_BYTES];
};

/* sj_connection_name names a connection for ever; 0 is none. sj_connection_of finds it, or NULL. */
uint64_t sj_connection_name(const sj_connection *connection);
sj_connection *sj_connection_of(sj_edge *edge, uint64_t name);

/* sj_connection_hang_up is the one end of a connection; it waits for nothing and drops what is
 * under way. */
void sj_connection_hang_up(sj_edge *edge, sj_connection *connection);

/* Each of these is false when the connection has ended within it. sj_connection_serve does what
 * epoll says can be done (0: look at what was read before); sj_connection_put queues bytes to be
 * sent; sj_connection_flush sends them; sj_connection_offer offers what is held again. */
bool sj_connection_serve(sj_edge *edge, sj_connection *connection, uint32_t events);
bool sj_connection_put(sj_edge *edge, sj_connection *connection, sj_slice bytes);
bool sj_connection_flush(sj_edge *edge, sj_connection *connection);
bool sj_connection_offer(sj_edge *edge, sj_connection *connection);

/* sj_connection_arm has epoll watch for what the connection waits for. */
void sj_connection_arm(sj_edge *edge, sj_connection *connection);

/* sj_connection_may_read is false while it has too much unanswered, unsent or not taken. */
bool sj_connection_may_read(const sj_edge *edge, const sj_connection *connection);

/* sj_connection_is_overdue returns whether one of its times is over. */
bool sj_connection_is_overdue(const sj_edge *edge, sj_connection *connection);

/* sj_strangers_add, sj_strangers_remove keep the lists by age; sj_strangers_hear notes that a
 * connection, a stranger's or not, has sent something. */
void sj_strangers_init(sj_edge *edge);
void sj_strangers_add(sj_edge *edge, sj_connection *connection);
void sj_strangers_hear(sj_edge *edge, sj_connection *connection);
void sj_strangers_remove(sj_edge *edge, sj_connection *connection);

/* sj_strangers_are_full returns whether one more needs the place of another;
 * sj_strangers_have_room whether it may have it now; sj_strangers_next_to_go returns the one that
 * goes first: of an address that has more than its share, else of any; and there of the larger
 * crowd (silent or heard), the oldest. NULL: there is none. */
bool sj_strangers_are_full(const sj_edge *edge);
bool sj_strangers_have_room(sj_edge *edge);
sj_connection *sj_strangers_next_to_go(sj_edge *edge);

#endif
