/* The block: calls of one stream (one execution stack) over some time, as bytes.
 *
 * The same bytes lie in the spool, on the wire and in the store. A block can be read alone: it
 * begins with the stack of calls open at its start (the key-frame), so a lost or late block never
 * corrupts the nesting of another, and the aggregates of a session do not depend on the order in
 * which its blocks arrive.
 *
 * Layout, little-endian:
 *   sj_block_header as bytes (SJ_BLOCK_HEADER_BYTES)
 *   column directory: column_count x { u16 id, u8 coding, u8 0, u32 raw_bytes, u32 stored_bytes }
 *   column bytes, in directory order
 *   crc32c of everything before it
 * Unknown columns are skipped by their directory entry. Decoders of every version are kept.
 *
 * Identity: (session, stream, kind, first_event, event_count). Events (entries and exits) and calls
 * (entries) of a stream are numbered from 0 by the device, dropped ones included: the next block
 * begins at first_event + event_count + lost_events and first_call + call_count + lost_calls, so a
 * missing block shows. Within a block, an event's number counts the gaps before it, too.
 *
 * An event is ENTER(function) or LEAVE. The encoder has already resolved throws, longjmp and lost
 * exits, so events are balanced against the key-frame: every LEAVE ends the innermost open call.
 * How a call ended is in the `endings` column for those that did not simply return.
 *
 * A call that ends by a tail call stays open, with the one it jumped to nested in it, until that
 * one ends: events tell who called whom in the source. A function that is entered by a tail call
 * has an entry of its own in the dictionary for that, and with it stands what the machine did: a
 * frame ended when another began. */
#ifndef SJ_PROTO_BLOCK_BLOCK_H
#define SJ_PROTO_BLOCK_BLOCK_H

#include "proto/base/cursor.h"
#include "proto/base/ids.h"
#include "proto/base/status.h"
#include "proto/block/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SJ_BLOCK_MAGIC UINT32_C(0x4b424a53) /* "SJBK" */

enum {
    SJ_BLOCK_VERSION = 2,        /* the newest one, of blocks with an SJ_ENDING_OPEN */
    SJ_BLOCK_CLOSED_VERSION = 1, /* of blocks without any; older collectors refuse the newer one */
    SJ_BLOCK_HEADER_BYTES = 128,
    SJ_BLOCK_MAX_EVENTS = 256 * 1024,
    SJ_FUNCTION_ID_BITS = 30,
    SJ_FUNCTION_ID_MAX = (1 << SJ_FUNCTION_ID_BITS) - 1, /* 0 names no function */
    SJ_BLOCK_STEP_BITS = 14, /* a stream's events are cut into steps of 2^14 */
    SJ_BLOCK_MAX_STEPS = (SJ_BLOCK_MAX_EVENTS >> SJ_BLOCK_STEP_BITS) + 1, /* that a block touches */
    SJ_BLOCK_MAX_INLINE_FRAMES = 4096,
    SJ_BLOCK_MAX_STACK_FRAMES = 64 * 1024, /* in one STACK block; deeper stacks take several */
    SJ_BLOCK_MAX_GAPS = 16 * 1024,
    SJ_BLOCK_MAX_VALUES = 16 * 1024,
    SJ_BLOCK_MAX_TEXT_BYTES = 2 * 1024 * 1024, /* of all its values */
    SJ_BLOCK_MAX_BYTES = 8 * 1024 * 1024       /* also the limit of one message */
};

typedef enum sj_block_kind {
    SJ_BLOCK_CALLS = 1,
    /* Frames of a deep stack, stored once and referenced. `first_event` is its number in its stream
     * (from 1, what `stack_reference` names); it has no events; `stack_frames` is the depth of its
     * first frame and `open_depth` that after its last; `stack_reference` is the one below it. The
     * callee times of its frames remain correct, because a block refers to so few of them that one
     * more frame has been open ever since; their gap flags are those of the referring header's
     * depths.
     */
    SJ_BLOCK_DEEP_FRAMES = 2
} sj_block_kind;

typedef enum sj_block_flag {
    SJ_BLOCK_LAST = 1 << 0,     /* the stream has ended: nothing follows */
    SJ_BLOCK_RECOVERED = 1 << 1 /* read from the ring of a process that died */
} sj_block_flag;

typedef enum sj_ending {
    SJ_ENDING_RETURNED = 0,
    SJ_ENDING_UNWOUND = 1,  /* a throw, longjmp or thread exit passed through the call; its end is
                               the time of the next thing seen on its stack */
    SJ_ENDING_OPEN = 2,     /* still open when the recording ended */
    SJ_ENDING_TRUNCATED = 3 /* its exit was dropped; its end lies somewhere in a gap */
} sj_ending;

/* sj_stack_frame.flags and sj_call.flags: why a call's figures are not exact. */
typedef enum sj_call_flag {
    SJ_CALL_BEFORE_RECORDING = 1 << 0, /* open when recording began, which counts as its start */
    SJ_CALL_GAP = 1 << 1,              /* a gap lies within: callees and self time incomplete */
    SJ_CALL_UNCERTAIN_DEPTH = 1 << 2,  /* entered after a gap whose open calls are unknown */
    SJ_CALL_WAITED = 1 << 3,           /* includes time that the thread waited for the drain */
    /* Nothing is missing, but no clock was read at its entry or its exit: its times are estimates
     * that lie between those of its timed neighbours. */
    SJ_CALL_UNTIMED = 1 << 4
} sj_call_flag;

/* A call that was open at the start of a block. */
typedef struct sj_stack_frame {
    uint64_t call_index; /* within the stream */
    uint64_t start_ticks;
    uint64_t child_ticks; /* total duration of its direct callees that have ended */
    uint64_t stack;       /* stack pointer at entry (48 bits), so that a salvager can go on */
    uint64_t left_ticks;  /* when it jumped to the call above it (a tail call); 0: it has not */
    uint32_t function;    /* session-wide function id */
    uint32_t flags;       /* sj_call_flag */
} sj_stack_frame;

typedef enum sj_gap_reason {
    SJ_GAP_RING_FULL = 1,
    SJ_GAP_NO_THREAD_SLOT = 2,
    SJ_GAP_TORN = 3,   /* slots reserved and never written, or unreadable after a crash */
    SJ_GAP_PAUSED = 4, /* recording was off */
    SJ_GAP_SPOOL_FULL = 5,
    SJ_GAP_WAITED = 6, /* nothing lost; the thread waited for the drain */
    SJ_GAP_ORPHAN = 7, /* exits whose entry was never seen (calls open before recording) */
    /* Nothing lost: the calls open here were entered before recording began, and their ENTERs bear
     * the time when it did. */
    SJ_GAP_BEFORE_RECORDING = 8
} sj_gap_reason;

/* Something that is missing or not known, before event `before_event` of the block (from 0). */
typedef struct sj_gap {
    uint32_t before_event;
    uint32_t reason; /* sj_gap_reason */
    uint64_t calls;  /* entries lost */
    uint64_t events; /* entries and exits lost */
    uint64_t start_ticks;
    uint64_t end_ticks;
} sj_gap;

typedef struct sj_block_ending {
    uint32_t event;  /* number of the LEAVE within the block */
    uint32_t ending; /* sj_ending */
} sj_block_ending;

/* A call that was entered by a tail call. The caller is still open and the innermost call, or it is
 * what the first of `ended` LEAVEs right in front of the ENTER ends: they are events only because
 * the chain was folded (see agent/assembler/tail_calls.h), and the caller jumped at that moment. */
typedef struct sj_block_tail_call {
    uint32_t event; /* number of the ENTER within the block */
    uint32_t ended;
} sj_block_tail_call;

/* The value of an argument or a result of a call, which may have been entered in an earlier block.
 */
typedef struct sj_block_value {
    uint64_t call_index; /* within the stream */
    uint64_t bits;       /* narrowed to its kind; not of a text */
    const char *text;    /* borrowed, without an end; NULL: it has none */
    uint16_t text_bytes; /* at most SJ_VALUE_TEXT_MOST */
    uint16_t rule;       /* whose condition it met: 1 + its place among the block's; 0: none */
    uint8_t descriptor;  /* position and kind */
    uint8_t note;        /* sj_value_note, of a text */
} sj_block_value;

/* Names of the policy's rules about values, as the block's values count them. */
typedef struct sj_block_rules {
    size_t count;
    char names[SJ_VALUE_RULES][SJ_VALUE_RULE_BYTES];
} sj_block_rules;

typedef struct sj_block_header {
    uint16_t version;
    uint8_t kind;  /* sj_block_kind */
    uint8_t flags; /* sj_block_flag */
    sj_session_id session;
    uint32_t stream;      /* device's number of the stream in its session, from 1 */
    uint64_t first_event; /* number of the first event of the block in its stream */
    uint64_t first_call;  /* number of the first call entered in the block */
    uint32_t event_count;
    uint32_t call_count;  /* entries among them */
    uint64_t first_ticks; /* time of the first and last event; of the flush for an empty block */
    uint64_t last_ticks;
    uint64_t lost_calls; /* sums over the gaps of the block */
    uint64_t lost_events;
    uint32_t clock_step;      /* the events' times differ from first_ticks by multiples of this */
    uint32_t open_depth;      /* calls open at the start */
    uint32_t end_depth;       /* calls open at the end */
    uint32_t stack_reference; /* number of the STACK block with the outermost frames; 0: none */
    uint32_t stack_frames;    /* how many of its (and its predecessors') frames are open here */
    /* Which calls open at the start are flagged, as numbers of outermost calls: see call_trust.h */
    uint32_t gap_depth;       /* SJ_CALL_GAP */
    uint32_t waited_depth;    /* SJ_CALL_WAITED */
    uint32_t uncertain_depth; /* not known to have outlived a gap */
    uint32_t column_count;
} sj_block_header;

/* Column ids. A column that would be empty is left out. */
typedef enum sj_block_column {
    SJ_COLUMN_KEYFRAME = 1,  /* inline frames, outermost first, column-wise varints */
    SJ_COLUMN_FUNCTIONS = 2, /* dictionary: varint function ids in order of first use */
    SJ_COLUMN_RUNS = 3,      /* lengths of predicted runs of events, see block_structure.c */
    SJ_COLUMN_TIMES = 4,     /* packed time gaps in clock steps, see block_times.c */
    SJ_COLUMN_ENDINGS = 5,
    SJ_COLUMN_GAPS = 6,
    SJ_COLUMN_MISSES = 7,     /* the events that no run covers */
    SJ_COLUMN_LONG_TIMES = 8, /* the gaps that SJ_COLUMN_TIMES has no room for */
    SJ_COLUMN_VALUE_ROWS = 9, /* of before; see block_value_rows.c */
    SJ_COLUMN_RETIRED = 10,   /* skipped, and not used again: README.md */
    /* Older readers skip these: see block_tail_calls.c */
    SJ_COLUMN_JUMPED_FRAMES = 11, /* calls of the key-frame that have jumped, and when */
    SJ_COLUMN_TAIL_SYMBOLS = 12,  /* dictionary entries of ENTERs by a tail call */
    SJ_COLUMN_VALUES = 13,        /* see block_values.c */
    SJ_COLUMN_UNTIMED = 14        /* which calls are SJ_CALL_UNTIMED: see block_untimed.c */
} sj_block_column;

typedef enum sj_block_coding { SJ_CODING_RAW = 0, SJ_CODING_ZSTD = 1 } sj_block_coding;

/* One event, as the encoder takes it and the decoder gives it. */
enum { SJ_EVENT_LEAVE = 0, SJ_EVENT_UNTIMED = 1 << 16 };

typedef struct sj_event {
    uint64_t ticks;
    uint32_t function;  /* SJ_EVENT_LEAVE, or the function id of an ENTER */
    uint32_t tail_call; /* of an ENTER: 1 + `ended` of its sj_block_tail_call; 0: it is none;
                           plus SJ_EVENT_UNTIMED where its call is SJ_CALL_UNTIMED */
} sj_event;

/* What the encoder is given. All arrays are borrowed. */
typedef struct sj_block_input {
    sj_block_header header;       /* counts and sums are filled in by the encoder */
    const sj_stack_frame *frames; /* inline frames: open_depth - stack_frames of them */
    const sj_event *events;
    const sj_block_ending *endings;
    size_t ending_count;
    const sj_gap *gaps;
    size_t gap_count;
    const sj_block_value *values; /* in the order of their events */
    size_t value_count;
    const char *const *rules; /* names that the values count from 1 */
    size_t rule_count;
} sj_block_input;

typedef struct sj_block_encoder sj_block_encoder;

/* sj_block_encoder_new makes an encoder (about 7 MB of tables, reused from block to block).
 * One thread at a time. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_encoder_new(sj_block_encoder **encoder);
void sj_block_encoder_free(sj_block_encoder *encoder);

/* sj_block_encode writes one block into `output` (at least sj_block_bound(input) bytes) and sets
 * its size. SJ_EINVAL: events not balanced, times going backwards, counts over the limits. */
SJ_MUST_CHECK sj_status sj_block_encode(sj_block_encoder *encoder, const sj_block_input *input,
                                        uint8_t *output, size_t capacity, size_t *size_bytes);
size_t sj_block_bound(const sj_block_input *input);

/* How deep the calls of a block are, by its symbols alone. */
typedef struct sj_block_depths {
    int64_t lowest;  /* least number of calls open; negative: a LEAVE without a call */
    int64_t entered; /* greatest number open after an ENTER; 0 when there is none */
    int64_t end;     /* open at the end */
} sj_block_depths;

/* A decoded block. Arrays belong to the decoder and last until its next call. */
typedef struct sj_block {
    sj_block_header header;
    const sj_stack_frame *frames; /* inline frames of the key-frame */
    size_t frame_count;
    const uint32_t *functions; /* dictionary; entries differ in this, in `tails` or in `untimed` */
    size_t function_count;
    const uint16_t *symbols16; /* one an event: 0 LEAVE, else 1 + dictionary index; */
    const uint32_t *symbols32; /* exactly one of the two is set (32 when over 65,534 functions) */
    const uint64_t *ticks;     /* one an event */
    const sj_block_ending *endings;
    size_t ending_count;
    const sj_gap *gaps;
    size_t gap_count;
    const sj_block_value *values;
    size_t value_count;
    const sj_block_rules *rules;
    const uint8_t *tails;   /* by symbol: `tail_call` of its ENTERs; NULL: there is no tail call */
    const uint8_t *untimed; /* by symbol: 1, its ENTERs are untimed; NULL: none is */
    const sj_block_tail_call *tail_calls; /* by event, with SJ_WANT_TAIL_CALLS */
    size_t tail_call_count;
    sj_block_depths depths;       /* when `is_checked` */
    const sj_block_depths *steps; /* likewise, one for each step that has events of the block */
    size_t step_count;
    bool is_checked; /* by the decoder: symbols, times and depths are sound */
} sj_block;

/* What a decode is asked for; the header, key-frame, endings, gaps and values always
 * come. */
typedef enum sj_block_want {
    SJ_WANT_STRUCTURE = 1 << 0,
    SJ_WANT_TIMES = 1 << 1,
    SJ_WANT_ALL = SJ_WANT_STRUCTURE | SJ_WANT_TIMES,
    SJ_WANT_TAIL_CALLS = 1 << 2 /* the list; with the structure */
} sj_block_want;

typedef struct sj_block_decoder sj_block_decoder;

SJ_MUST_CHECK sj_status sj_block_decoder_new(sj_block_decoder **decoder);
void sj_block_decoder_free(sj_block_decoder *decoder);

/* sj_block_decode checks the crc and every count and decodes what `want` names. Bytes may come from
 * anyone: SJ_ECORRUPT, SJ_EVERSION or SJ_ELIMIT, never a crash and never more memory than the
 * limits above allow. */
SJ_MUST_CHECK sj_status sj_block_decode(sj_block_decoder *decoder, sj_slice bytes, unsigned want,
                                        sj_block *block);

/* sj_block_measure_depths walks the symbols of a block that has them. */
sj_block_depths sj_block_measure_depths(const sj_block *block);

/* sj_block_measure_steps does so for each step of the stream that the block has events of, and
 * returns what it says of the whole. `steps` has room for SJ_BLOCK_MAX_STEPS; those behind a LEAVE
 * without a call are not measured. */
sj_block_depths sj_block_measure_steps(const sj_block *block, sj_block_depths *steps,
                                       size_t *step_count);

/* sj_block_set_session makes an encoded block one of another session, its crc included.
 * SJ_ECORRUPT: it is too short to be one. */
SJ_MUST_CHECK sj_status sj_block_set_session(uint8_t *bytes, size_t size,
                                             const sj_session_id *session);

/* sj_block_read_header reads and checks the header only (not the crc). */
SJ_MUST_CHECK sj_status sj_block_read_header(sj_slice bytes, sj_block_header *header);

#endif
