/* What one REQ peer says on the wire of the SP protocols, turned into messages.
 *
 *   greeting             00 'S' 'P' 00 | u16 protocol 0x30 | 00 00
 *   message over tcp     u64 length of the rest | way back | body
 *   message over ipc     01 | the same
 *   way back             words of 4 bytes; the last one has its highest bit set
 *
 * Big-endian. Pure: no system calls, no clock; the caller brings the bytes. Memory grows with the
 * bytes that came, never with the length that was announced, and is charged to an account. One
 * thread. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_SP_PEER_H
#define SJ_COLLECTOR_SERVER_EDGE_SP_PEER_H

#include "proto/base/cursor.h"

enum {
    SJ_SP_PEER_GREETING_BYTES = 8,
    SJ_SP_PEER_PREFIX_BYTES = 9,   /* at most, in front of the way back */
    SJ_SP_WAY_BACK_MAX_BYTES = 36, /* eight devices between, and the request's id */
    SJ_SP_CUT_BYTES = 64           /* what is kept of a message that is skipped */
};

/* Bytes that many peers share. */
typedef struct sj_byte_account {
    size_t used;
    size_t limit;
} sj_byte_account;

typedef struct sj_sp_limits {
    size_t message_bytes; /* way back and body; a peer that announces more is broken */
    size_t kept_bytes;    /* longer ones are read and dropped but for their beginning */
} sj_sp_limits;

/* Zeroed, with `is_ipc` set, is the start of a connection. */
typedef struct sj_sp_peer {
    bool is_ipc;
    bool is_greeted;
    bool is_skipping;
    uint8_t prefix_bytes;
    uint8_t prefix[SJ_SP_PEER_PREFIX_BYTES];
    uint8_t *message; /* owned */
    size_t size;      /* announced; 0: no message has begun */
    size_t got;
    size_t room; /* of `message`, charged to the account */
} sj_sp_peer;

typedef enum sj_sp_result {
    SJ_SP_MORE,    /* all bytes were taken; the message is not whole */
    SJ_SP_MESSAGE, /* one is whole: sj_sp_peer_take it before feeding more */
    SJ_SP_NO_ROOM, /* the account is used up; feed the rest again later */
    SJ_SP_BROKEN   /* this is no REQ of SP, or memory has run out: hang up */
} sj_sp_result;

/* sj_sp_peer_feed takes in bytes from the front of `bytes` until they end or a message is whole.
 * With `may_exceed` the account's limit does not hold (for one peer at a time, so that messages
 * which are half read do not wait for each other for ever). */
sj_sp_result sj_sp_peer_feed(sj_sp_peer *peer, const sj_sp_limits *limits, sj_byte_account *account,
                             bool may_exceed, sj_slice *bytes);

/* sj_sp_peer_place gives the place of the next bytes of a long message, to be read into at once;
 * they are added by sj_sp_peer_placed. NULL: feed them; `*result` is SJ_SP_NO_ROOM or SJ_SP_BROKEN
 * when that would not go either, else SJ_SP_MORE. */
uint8_t *sj_sp_peer_place(sj_sp_peer *peer, sj_byte_account *account, bool may_exceed,
                          size_t *room_bytes, sj_sp_result *result);
sj_sp_result sj_sp_peer_placed(sj_sp_peer *peer, size_t bytes);

typedef struct sj_sp_whole {
    uint8_t *memory; /* free() */
    size_t charged;  /* to the account; the caller takes it off */
    size_t way_back_bytes;
    sj_slice body; /* in `memory`; empty when `is_cut` */
    bool is_cut;   /* longer than `kept_bytes` */
} sj_sp_whole;

/* sj_sp_peer_take takes the message that is whole. SJ_ECORRUPT: its way back is none; nothing is
 * taken. */
SJ_MUST_CHECK sj_status sj_sp_peer_take(sj_sp_peer *peer, sj_sp_whole *whole);

/* sj_sp_peer_drop frees what was read of a message and takes it off the account. */
void sj_sp_peer_drop(sj_sp_peer *peer, sj_byte_account *account);

/* sj_sp_peer_is_within returns whether a message has begun and is not whole. */
bool sj_sp_peer_is_within(const sj_sp_peer *peer);

/* sj_sp_reply_prefix writes what goes in front of the way back and `body_bytes` of an answer;
 * returns its length. */
size_t sj_sp_reply_prefix(bool is_ipc, uint64_t rest_bytes,
                          uint8_t prefix[SJ_SP_PEER_PREFIX_BYTES]);

/* sj_sp_rep_greeting is what a REP says first. */
extern const uint8_t sj_sp_rep_greeting[SJ_SP_PEER_GREETING_BYTES];

#endif
