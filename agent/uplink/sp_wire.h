/* The wire of the SP protocols as a REQ speaks it to a REP over tcp or ipc.
 *
 *   greeting, both ways   00 'S' 'P' 00 | u16 protocol (REQ 0x30, REP 0x31) | 00 00
 *   message over tcp      u64 length of the rest | u32 request id, highest bit set | body
 *   message over ipc      01 | the same
 *
 * Big-endian. Pure: no system calls; the caller brings the bytes. */
#ifndef SJ_AGENT_UPLINK_SP_WIRE_H
#define SJ_AGENT_UPLINK_SP_WIRE_H

#include "proto/base/cursor.h"

enum {
    SJ_SP_GREETING_BYTES = 8,
    SJ_SP_HEADER_MAX_BYTES = 1 + 8 + 4, /* in front of a body */
    SJ_SP_BODY_MAX_BYTES = 64 * 1024    /* of an answer; longer ones are refused */
};

#define SJ_SP_REQUEST_BIT UINT32_C(0x80000000)

/* sj_sp_greeting writes what a REQ says first. */
void sj_sp_greeting(uint8_t greeting[SJ_SP_GREETING_BYTES]);

/* sj_sp_header writes what goes in front of a body of `body_bytes`; returns its length. */
size_t sj_sp_header(bool is_ipc, uint32_t request, uint64_t body_bytes,
                    uint8_t header[SJ_SP_HEADER_MAX_BYTES]);

/* What came from the REP and was not yet taken. Zeroed, with `is_ipc` set, is the start of a
 * connection. */
typedef struct sj_sp_reader {
    bool is_ipc;
    bool is_greeted;
    size_t used;  /* taken of `bytes` */
    size_t count; /* of `bytes` */
    uint8_t bytes[SJ_SP_HEADER_MAX_BYTES + SJ_SP_BODY_MAX_BYTES];
} sj_sp_reader;

/* sj_sp_reader_room gives room for bytes that come next, never none after SJ_EAGAIN; they are added
 * with sj_sp_reader_fed. */
uint8_t *sj_sp_reader_room(sj_sp_reader *reader, size_t *room_bytes);
void sj_sp_reader_fed(sj_sp_reader *reader, size_t bytes);

typedef struct sj_sp_message {
    uint32_t request;
    sj_slice body; /* borrowed until the reader's next call */
} sj_sp_message;

/* sj_sp_reader_next takes the next message. SJ_EAGAIN: more bytes are needed; SJ_EUNSUPPORTED: the
 * peer is no REP of SP; SJ_ELIMIT: the message is too long; SJ_ECORRUPT: it is none. After any of
 * the latter three the connection is of no use. */
SJ_MUST_CHECK sj_status sj_sp_reader_next(sj_sp_reader *reader, sj_sp_message *message);

#endif
