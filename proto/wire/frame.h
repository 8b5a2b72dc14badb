/* The frame: one message on the wire, and one record of the spool.
 *
 *   u32 magic "SJF1" | u8 major | u8 minor | u16 type | u32 header_bytes | u32 payload_bytes
 *   u32 crc32c of everything else | header (protobuf, sojourn.proto) | payload (raw bytes)
 *
 * Little-endian. A frame has at most SJ_FRAME_MAX_BYTES. Its header has at most
 * SJ_FRAME_MAX_HEADER_BYTES, because a protobuf of 64 KiB can unpack to 5 MB. The major version
 * must match. A new minor version adds types and fields that older readers skip. */
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
    SJ_REPORT_MAX_BYTES = 256 * 1024, /* payload of a REPORT frame */
    SJ_REPORT_NAME_BYTES = 64         /* limit of a monitor's name, and of a report's kind */
};

/* The type says which message the header holds and what the payload means. */
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
    SJ_FRAME_UNHOOKED = 12, /* Unhooked: functions that the agent refused to hook */
    SJ_FRAME_DEVICE_CLOCK =
        13,                 /* DeviceClock: the offset between the clocks of device and collector */
    SJ_FRAME_POLICY = 16,   /* Policy: what is recorded from now on */
    SJ_FRAME_PROFILE = 17,  /* Profile + payload: sums per call path (callgraph/profile.h) */
    SJ_FRAME_DECISION = 18, /* Decision of the overhead budget */
    SJ_FRAME_TRIGGER = 19,  /* Trigger: a trigger that fired */
    SJ_FRAME_FILTERED = 20, /* Filtered: calls that were counted but not kept */
    SJ_FRAME_STACK = 21,    /* Stack: native stack of one thread */
    SJ_FRAME_REPORT = 22,   /* Report + payload: a JSON object */
    SJ_FRAME_ENROL = 32,    /* Hello with an enrolment token; the reply is ENROLLED */
    SJ_FRAME_ENROLLED = 33, /* Enrolled */
    SJ_FRAME_POLL = 34,     /* Poll; the reply is COMMAND, or ACK if there is none */
    SJ_FRAME_COMMAND = 35,  /* Command */
    SJ_FRAME_RESULT = 36,   /* CommandResult */
    SJ_FRAME_FETCH = 37,    /* Fetch; the reply is PART */
    SJ_FRAME_PART = 38,     /* Part + payload */
    SJ_FRAME_CLAIM = 39,    /* Claim */
    SJ_FRAME_FLEET_LAST = 47,
    /* Ack: the reply to a frame that was refused, or stored and committed */
    SJ_FRAME_ACK = 128,
    SJ_FRAME_PING = 129 /* empty; the listener's watchdog sends it; the reply is ACK */
} sj_frame_type;

typedef struct sj_frame_view {
    uint8_t major;
    uint8_t minor;
    uint16_t type;
    sj_slice header; /* borrowed from the frame's bytes */
    sj_slice payload;
    size_t frame_bytes; /* size of the whole frame */
} sj_frame_view;

/* Parses the frame at the start of `bytes`. `frame` borrows from `bytes`. Thread-safe. Does not
 * block. Errors: SJ_EAGAIN if the frame is incomplete; SJ_ECORRUPT if magic or checksum is wrong;
 * SJ_EVERSION for another major version; SJ_ELIMIT if the announced lengths exceed the limits. */
SJ_MUST_CHECK sj_status sj_frame_read(sj_slice bytes, sj_frame_view *frame);

/* Writes a frame into `output` and sets its size. Errors: SJ_ELIMIT if the frame exceeds the
 * format's limits or `capacity`. */
SJ_MUST_CHECK sj_status sj_frame_write(uint16_t type, sj_slice header, sj_slice payload,
                                       uint8_t *output, size_t capacity, size_t *size_bytes);

#endif
