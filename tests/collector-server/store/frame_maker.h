/* Makes the frames of a synthetic session, for tests and benches of store, ingest and uplink. */
#ifndef SJ_TESTS_COLLECTOR_SERVER_STORE_FRAME_MAKER_H
#define SJ_TESTS_COLLECTOR_SERVER_STORE_FRAME_MAKER_H

#include "proto/block/block.h"
#include "proto/wire/frame.h"

typedef struct frame_maker {
    uint8_t session_tag;     /* byte that fills the session's id */
    uint32_t session_number; /* last bytes of the session's id and of the device's; 0: not used */
    sj_block_encoder *encoder;
    uint8_t *block;
    size_t block_capacity;
    uint8_t *frame; /* the latest frame */
    size_t frame_capacity;
    sj_event *events;
    uint64_t next_event;
    uint64_t next_call;
    uint64_t ticks;
    uint32_t random;
    /* suffix of the names of device, session, threads, functions, marks and tags; NULL: none */
    const char *name_end;
    char name[48];             /* the latest name */
    uint32_t function_count;   /* functions of the module; 0: FRAME_MAKER_FUNCTIONS */
    uint32_t called_for_first; /* the function that is called for function 1; 0: function 1 */
    bool steady;  /* calls repeat as in real programs, with some noise; else they are random */
    bool counted; /* three of four calls are made without a clock */
    uint32_t lost_calls;   /* calls that each block reports as lost behind its last event */
    uint32_t gap_before;   /* the events are lost before this event instead; 0: not used */
    uint32_t children[64]; /* calls made so far by each open call */
    uint32_t roots;
    uint32_t stream; /* number of the stream and of its thread; 0: 1 */
    uint64_t blocks; /* blocks that the end of the session names */
    /* One open stack, which continues from block to block. */
    sj_stack_frame stack[64];
    uint32_t depth;
    uint32_t deep_frames; /* frames of the block of open calls that the next block refers to */
    uint32_t deep_blocks; /* number of such blocks */
} frame_maker;

enum { FRAME_MAKER_FUNCTIONS = 200, FRAME_MAKER_STARTED_TICKS = 1000000 };

void frame_maker_init(frame_maker *maker, uint8_t session_tag);
void frame_maker_deinit(frame_maker *maker);

/* Each function returns a frame that is valid until the next call. */
sj_slice frame_maker_hello(frame_maker *maker);
sj_slice frame_maker_session(frame_maker *maker);
sj_slice frame_maker_module(frame_maker *maker);
sj_slice frame_maker_thread(frame_maker *maker);
sj_slice frame_maker_end(frame_maker *maker);
sj_slice frame_maker_mark(frame_maker *maker, uint64_t number);

/* Returns a report of the monitor "heap" with `payload` as its JSON. */
sj_slice frame_maker_report(frame_maker *maker, uint64_t number, const char *kind,
                            const char *payload);

/* Returns a report of the given monitor, `ticks` after the session's start. */
sj_slice frame_maker_report_of(frame_maker *maker, const char *monitor, uint64_t number,
                               uint64_t ticks, const char *kind, const char *payload);

/* Returns a gap that is not in a block. */
sj_slice frame_maker_gap(frame_maker *maker, uint64_t number, uint64_t lost_calls);

/* Returns a block of the calls that are open now. The next block of events refers to it. */
sj_slice frame_maker_deep_frames(frame_maker *maker);

/* Returns the next `event_count` events of the stream, nested up to 8 deep. The block also reports
 * the maker's `lost_calls`, of two events each. */
sj_slice frame_maker_block(frame_maker *maker, uint32_t event_count, unsigned flags);

/* Returns a profile with the bytes `raw`. `sums` gives its ticks, calls and events. */
sj_slice frame_maker_profile(frame_maker *maker, uint64_t number, const sj_block_header *sums,
                             sj_slice raw);

/* Returns a frame of `type` with the header and payload. */
sj_slice frame_maker_wrap(frame_maker *maker, uint16_t type, sj_slice header, sj_slice payload);

#endif
