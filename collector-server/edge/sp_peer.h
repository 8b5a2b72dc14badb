/* Parses the bytes that one REQ peer sends by the SP protocols into messages.
 *
 *   greeting             00 'S' 'P' 00 | u16 protocol 0x30 | 00 00
 *   message over tcp     u64 length of the rest | way back | body
 *   message over ipc     01 | the same
 *   way back             words of 4 bytes; the last one has its highest bit set
 *
 * Big-endian. No system calls, no clock: the caller supplies the bytes. Memory grows with the
 * received bytes, not with the announced length, and is charged to an account. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_SP_PEER_H
#define SJ_COLLECTOR_SERVER_EDGE_SP_PEER_H

#include "proto/base/cursor.h"

enum {
    SJ_SP_PEER_GREETING_BYTES = 8,
    SJ_SP_PEER_PREFIX_BYTES = 9,   /* maximum size before the way back */
    SJ_SP_WAY_BACK_MAX_BYTES = 36, /* eight SP devices on the way, and the request's id */
    SJ_SP_CUT_BYTES = 64           /* kept bytes of a message that is skipped */
};

/* A byte count with a limit that many peers share. */
typedef struct sj_byte_account {
    size_t used;
    size_t limit;
} sj_byte_account;

typedef struct sj_sp_limits {
    /* maximum size of way back and body; a peer that announces more is broken */
    size_t message_bytes;
    size_t kept_bytes; /* only the beginning of longer messages is kept */
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
    size_t got;
    size_t capacity; /* capacity of `message`, charged to the account */
} sj_sp_peer;

typedef enum sj_sp_result {
    SJ_SP_MORE,     /* all bytes were consumed; the message is not complete */
    SJ_SP_MESSAGE,  /* a message is complete: call sj_sp_peer_pop before feeding more */
    SJ_SP_NO_SPACE, /* the account is used up; feed the rest again later */
    SJ_SP_BROKEN    /* this is not SP's REQ protocol, or memory has run out: close */
} sj_sp_result;

/* Consumes bytes from the front of `bytes` until they end or a message is complete. With
 * `may_exceed`, the account's limit does not apply. Use that for one peer at a time, so that
 * incomplete messages do not wait for each other for ever. */
sj_sp_result sj_sp_peer_feed(sj_sp_peer *peer, const sj_sp_limits *limits, sj_byte_account *account,
                             bool may_exceed, sj_slice *bytes);

/* Returns the position of the next bytes of a long message, so that they can be read directly
 * into it. sj_sp_peer_placed then adds them. If it returns NULL and `*result` is SJ_SP_MORE, use
 * sj_sp_peer_feed. If `*result` is SJ_SP_NO_SPACE or SJ_SP_BROKEN, sj_sp_peer_feed would return
 * the same. */
uint8_t *sj_sp_peer_place(sj_sp_peer *peer, sj_byte_account *account, bool may_exceed,
                          size_t *space_bytes, sj_sp_result *result);
sj_sp_result sj_sp_peer_placed(sj_sp_peer *peer, size_t bytes);

typedef struct sj_sp_whole {
    uint8_t *memory; /* release by free() */
    size_t charged;  /* bytes charged to the account; the caller subtracts them */
    size_t way_back_bytes;
    sj_slice body; /* points into `memory`; empty if `is_cut` */
    bool is_cut;   /* longer than `kept_bytes` */
} sj_sp_whole;

/* Returns the complete message. Returns SJ_ECORRUPT, and no message, if its way back is invalid. */
SJ_MUST_CHECK sj_status sj_sp_peer_pop(sj_sp_peer *peer, sj_sp_whole *whole);

/* Frees the incomplete message and subtracts its memory from the account. */
void sj_sp_peer_discard(sj_sp_peer *peer, sj_byte_account *account);

/* True if a message has begun and is not complete. */
bool sj_sp_peer_is_within(const sj_sp_peer *peer);

/* Writes the bytes before the way back and the body of an answer. Returns their number. */
size_t sj_sp_reply_prefix(bool is_ipc, uint64_t rest_bytes,
                          uint8_t prefix[SJ_SP_PEER_PREFIX_BYTES]);

/* The greeting that a REP sends first. */
extern const uint8_t sj_sp_rep_greeting[SJ_SP_PEER_GREETING_BYTES];

#endif
