/* Parses the bytes that one REQ peer sends by the SP protocols into messages.
 *
 *   greeting             00 'S' 'P' 00 | u16 protocol 0x30 | 00 00
 *   message over tcp     u64 length of way back and body | way back | body
 *   message over ipc     01 | the same as over tcp
 *   way back             words of 4 bytes; the last one has its highest bit set
 *
 * Big-endian. No system calls, no clock: the caller supplies the bytes. Memory grows with the
 * received bytes, not with the announced length, and is charged to an account. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_SP_PEER_H
#define SJ_COLLECTOR_SERVER_EDGE_SP_PEER_H

#include "proto/base/cursor.h"

enum {
    SJ_SP_PEER_GREETING_BYTES = 8,
    SJ_SP_PEER_PREFIX_BYTES = 9,   /* the bytes before the way back: at most 01 and the length */
    SJ_SP_WAY_BACK_MAX_BYTES = 36, /* eight SP devices on the way, and the request's id */
    SJ_SP_CUT_BYTES = 64           /* kept bytes of a message that is longer than `kept_bytes` */
};

/* A count of bytes of memory, and its limit. Many peers share an account. */
typedef struct sj_byte_account {
    size_t used;
    size_t limit;
} sj_byte_account;

typedef struct sj_sp_limits {
    /* maximum size of way back and body; a peer that announces more is broken */
    size_t message_bytes;
    size_t kept_bytes; /* a longer message is skipped, except for SJ_SP_CUT_BYTES */
} sj_sp_limits;

/* Initialise with zeros, and set `is_ipc`. */
typedef struct sj_sp_peer {
    bool is_ipc;
    bool is_greeted;
    bool is_skipping;
    uint8_t prefix_bytes;
    uint8_t prefix[SJ_SP_PEER_PREFIX_BYTES];
    uint8_t *message; /* owned */
    size_t size;      /* announced size; 0: no message has begun */
    size_t got;       /* received bytes of the message */
    size_t capacity;  /* capacity of `message`, charged to the account */
} sj_sp_peer;

typedef enum sj_sp_result {
    SJ_SP_MORE,     /* all bytes were consumed; the message is not complete */
    SJ_SP_MESSAGE,  /* a message is complete: call sj_sp_peer_pop before feeding more */
    SJ_SP_NO_SPACE, /* the account is used up; feed the rest again later */
    SJ_SP_BROKEN    /* these bytes are not SP's REQ protocol, or memory ran out: close */
} sj_sp_result;

/* Consumes bytes from the front of `bytes` until they end or a message is complete. If
 * `may_exceed`, the account's limit does not apply. Set it for one peer at a time: otherwise
 * incomplete messages could use up the account and wait for each other for ever. */
sj_sp_result sj_sp_peer_feed(sj_sp_peer *peer, const sj_sp_limits *limits, sj_byte_account *account,
                             bool may_exceed, sj_slice *bytes);

/* A faster way for the bytes of a long message. sj_sp_peer_reserve returns a pointer into the
 * message and `*space_bytes`: the caller reads up to that many bytes from the socket to there, and
 * passes their number to sj_sp_peer_commit. That function returns SJ_SP_MESSAGE or SJ_SP_MORE.
 *
 * If sj_sp_peer_reserve returns NULL, `*result` says why. SJ_SP_MORE: not a long message; use
 * sj_sp_peer_feed. SJ_SP_NO_SPACE, SJ_SP_BROKEN: as for sj_sp_peer_feed. */
uint8_t *sj_sp_peer_reserve(sj_sp_peer *peer, sj_byte_account *account, bool may_exceed,
                            size_t *space_bytes, sj_sp_result *result);
sj_sp_result sj_sp_peer_commit(sj_sp_peer *peer, size_t bytes);

typedef struct sj_sp_whole {
    uint8_t *memory; /* release by free() */
    size_t charged;  /* bytes charged to the account; the caller subtracts them */
    size_t way_back_bytes;
    sj_slice body; /* points into `memory`; empty if `is_cut` */
    bool is_cut;   /* longer than `kept_bytes` */
} sj_sp_whole;

/* Moves the complete message to `whole`. Returns SJ_ECORRUPT if the message's way back is invalid;
 * the message then stays in `peer`. */
SJ_MUST_CHECK sj_status sj_sp_peer_pop(sj_sp_peer *peer, sj_sp_whole *whole);

/* Frees the incomplete message and subtracts its memory from the account. */
void sj_sp_peer_discard(sj_sp_peer *peer, sj_byte_account *account);

/* True if a part of the greeting has arrived, or a part of a message that was not popped yet. */
bool sj_sp_peer_is_within(const sj_sp_peer *peer);

/* Writes the bytes that precede the way back of an answer. `rest_bytes` is the size of way back and
 * body. Returns the number of written bytes. */
size_t sj_sp_reply_prefix(bool is_ipc, uint64_t rest_bytes,
                          uint8_t prefix[SJ_SP_PEER_PREFIX_BYTES]);

/* The greeting that a REP side sends when a connection begins. */
extern const uint8_t sj_sp_rep_greeting[SJ_SP_PEER_GREETING_BYTES];

#endif
