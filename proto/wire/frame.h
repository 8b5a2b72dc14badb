/* The frame: one message on the wire and one record of the spool.
 *
 *   u32 magic "SJF1" | u8 major | u8 minor | u16 type | u32 header_bytes | u32 payload_bytes
 *   u32 crc32c of everything else | header (protobuf, sojourn.proto) | payload (raw bytes)
 *
 * Little-endian. A frame is never longer than SJ_FRAME_MAX_BYTES; the header never longer than
 * SJ_FRAME_MAX_HEADER_BYTES (a protobuf of 64 KiB can unpack to 5 MB at worst). Major versions must
 * match; minor ones add types and fields that older readers skip. */
#ifndef SJ_PROTO_WIRE_FRAME_H
#define SJ_PROTO_WIRE_FRAME_H

#include "proto/base/cursor.h"
#include "proto/base/status.h"

#define SJ_FRAME_MAGIC UINT32_C(0x31464a53) /* "SJF1" */

enum {
    SJ_FRAME_MAJOR = 1,
    SJ_FRAME_MINOR = 0,
    SJ_FRAME_PREFIX_BYTES = 20,
    SJ_FRAME_MAX_HEADER_BYTES = 64 * 1024,
    SJ_FRAME_MAX_BYTES = 8 * 1024 * 1024 + 128 * 1024,
    SJ_REPORT_MAX_BYTES = 256 * 1024, /* payload of a REPORT */
    SJ_REPORT_NAME_BYTES = 64         /* its monitor and kind: [A-Za-z0-9_.-], each at most */
};

/* Type of a frame, and so the message in its header and the meaning of its payload. */
typedef enum sj_frame_type {
    SJ_FRAME_HELLO = 1,   /* Hello; first frame of a connection */
    SJ_FRAME_SESSION = 2, /* Session: begin or update */
    SJ_FRAME_PROCESS = 3, /* Process: begin, end, exit status */
    SJ_FRAME_MODULE = 4,  /* Module + payload: function table, see function_table.h */
    SJ_FRAME_THREAD = 5,  /* Thread and its streams */
    SJ_FRAME_CLOCK = 6,   /* ClockPairs */
    SJ_FRAME_BLOCK = 7,   /* BlockInfo + payload: the block */
    SJ_FRAME_MARK = 8,    /* Mark */
    SJ_FRAME_GAP = 9,     /* Gap that lies in no block */
    SJ_FRAME_SESSION_END = 10,
    SJ_FRAME_MAPPING = 11,  /* Mapping: module loaded in a process at an address */
    SJ_FRAME_UNHOOKED = 12, /* Unhooked: functions left alone by the agent */
    SJ_FRAME_DEVICE_CLOCK =
        13,                 /* DeviceClock: how far the device's clock is from the collector's */
    SJ_FRAME_POLICY = 16,   /* Policy: what is recorded from here on */
    SJ_FRAME_PROFILE = 17,  /* Profile + payload: sums per call path (callgraph/profile.h) */
    SJ_FRAME_DECISION = 18, /* Decision of the overhead budget */
    SJ_FRAME_TRIGGER = 19,  /* Trigger that fired */
    SJ_FRAME_FILTERED = 20, /* Filtered: calls that were counted and not kept */
    SJ_FRAME_STACK = 21,    /* Stack: native stack of one thread */
    SJ_FRAME_REPORT = 22,   /* Report + payload: a JSON object */
    SJ_FRAME_ENROL = 32,    /* Hello with an enrolment token; answered by ENROLLED */
    SJ_FRAME_ENROLLED = 33, /* Enrolled */
    SJ_FRAME_POLL = 34,     /* Poll: answered by COMMAND or, when there is none, by ACK */
    SJ_FRAME_COMMAND = 35,  /* Command */
    SJ_FRAME_RESULT = 36,   /* CommandResult */
    SJ_FRAME_FETCH = 37,    /* Fetch: answered by PART */
    SJ_FRAME_PART = 38,     /* Part + payload */
    SJ_FRAME_FLEET_LAST = 47,
    SJ_FRAME_ACK = 128, /* Ack: answer to any of the above, after COMMIT */
    SJ_FRAME_PING = 129 /* empty; the listener's own watchdog; answered by Ack */
} sj_frame_type;

typedef struct sj_frame_view {
    uint8_t major;
    uint8_t minor;
    uint16_t type;
    sj_slice header; /* borrowed from the frame's bytes */
    sj_slice payload;
    size_t frame_bytes; /* total length */
} sj_frame_view;

/* sj_frame_read parses the frame at the start of `bytes`. SJ_EAGAIN: more bytes are needed (spool
 * tail); SJ_ECORRUPT: magic, lengths or crc wrong; SJ_EVERSION: other major; SJ_ELIMIT: too long.
 */
SJ_MUST_CHECK sj_status sj_frame_read(sj_slice bytes, sj_frame_view *frame);

/* sj_frame_write builds a frame into `output`. SJ_ELIMIT when it would be too long for the format
 * or the buffer. */
SJ_MUST_CHECK sj_status sj_frame_write(uint16_t type, sj_slice header, sj_slice payload,
                                       uint8_t *output, size_t capacity, size_t *size_bytes);

#endif
