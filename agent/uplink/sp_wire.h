/* The wire format of the SP protocols between a REQ and a REP over tcp or ipc.
 *
 *   greeting, both ways   00 'S' 'P' 00 | u16 protocol (REQ 0x30, REP 0x31) | 00 00
 *   message over tcp      u64 length of the rest | u32 request id, highest bit set | body
 *   message over ipc      01 | the same
 *
 * All numbers are big-endian. These functions make no system calls; the caller moves the bytes. */
#ifndef SJ_AGENT_UPLINK_SP_WIRE_H
#define SJ_AGENT_UPLINK_SP_WIRE_H

#include "proto/base/cursor.h"

enum {
    SJ_SP_GREETING_BYTES = 8,
    SJ_SP_HEADER_MAX_BYTES = 1 + 8 + 4, /* Maximum number of bytes before a body. */
    SJ_SP_BODY_MAX_BYTES = 64 * 1024    /* Longer replies are refused. */
};

#define SJ_SP_REQUEST_BIT UINT32_C(0x80000000)

/* Writes the greeting of a REQ. */
void sj_sp_greeting(uint8_t greeting[SJ_SP_GREETING_BYTES]);

/* Writes the header of a body of `body_bytes`. Returns the size of the header. */
size_t sj_sp_header(bool is_ipc, uint32_t request, uint64_t body_bytes,
                    uint8_t header[SJ_SP_HEADER_MAX_BYTES]);

/* Bytes from the REP that were not consumed yet. It starts zeroed, with `is_ipc` set, for each
 * connection. */
typedef struct sj_sp_reader {
    bool is_ipc;
    bool is_greeted;
    size_t used;  /* Bytes of `bytes` that were consumed. */
    size_t count; /* Bytes of `bytes` that are valid. */
    uint8_t bytes[SJ_SP_HEADER_MAX_BYTES + SJ_SP_BODY_MAX_BYTES];
} sj_sp_reader;

/* Returns where to read further bytes to, and the capacity there. The capacity is never 0 after
 * SJ_EAGAIN. sj_sp_reader_fed adds the bytes that were read. */
uint8_t *sj_sp_reader_space(sj_sp_reader *reader, size_t *space_bytes);
void sj_sp_reader_fed(sj_sp_reader *reader, size_t bytes);

typedef struct sj_sp_message {
    uint32_t request;
    sj_slice body; /* Borrowed until the reader's next call. */
} sj_sp_message;

/* Reads the next message. Returns SJ_EAGAIN if more bytes are needed. Returns SJ_EUNSUPPORTED if
 * the peer is not a REP of SP, and SJ_ELIMIT if the message is too long. Returns SJ_ECORRUPT if it
 * is malformed. After the latter three the connection is unusable. */
SJ_MUST_CHECK sj_status sj_sp_reader_next(sj_sp_reader *reader, sj_sp_message *message);

#endif
