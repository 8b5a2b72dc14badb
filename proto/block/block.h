/* The block: the encoded calls of one stream (one execution stack) over some time.
 *
 * Spool, wire and store hold the same bytes. A block can be read alone, because it begins with the
 * calls that are open at its start (the key-frame). So a lost or late block never corrupts the
 * nesting of another one. The aggregates of a session do not depend on the order in which blocks
 * arrive.
 *
 * Layout, little-endian:
 *   sj_block_header as bytes (SJ_BLOCK_HEADER_BYTES)
 *   column directory: column_count x { u16 id, u8 coding, u8 0, u32 raw_bytes, u32 stored_bytes }
 *   column bytes, in directory order
 *   crc32c of everything before it
 * Readers skip unknown columns. Decoders of every version are kept.
 *
 * Identity: (session, stream, kind, first_event, event_count). The device numbers the events
 * (entries and exits) and the calls (entries) of a stream from 0 and counts dropped ones, too. The
 * next block begins at first_event + event_count + lost_events and first_call + call_count +
 * lost_calls. So a missing block shows as a hole. Within a block, an event's number also counts the
 * events that the gaps before it lost.
 *
 * An event is ENTER(function) or LEAVE. The encoder gets balanced events: the assembler has
 * resolved throws, longjmp and lost exits. Every LEAVE ends the innermost open call. The `endings`
 * column has the calls that did not simply return.
 *
 * A call that ends by a tail call stays open, with the call that it jumped to nested in it, until
 * that call ends. So the events show who called whom in the source. A function entered by a tail
 * call has a dictionary entry of its own, which also says how many stack frames ended at the jump.
 */
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
    SJ_BLOCK_VERSION = 2,        /* the newest version: blocks with an SJ_ENDING_OPEN */
    SJ_BLOCK_CLOSED_VERSION = 1, /* all other blocks; older collectors read it */
    SJ_BLOCK_HEADER_BYTES = 128,
    SJ_BLOCK_MAX_EVENTS = 256 * 1024,
    SJ_FUNCTION_ID_BITS = 30,
    SJ_FUNCTION_ID_MAX = (1 << SJ_FUNCTION_ID_BITS) - 1, /* function id 0 is invalid */
    SJ_BLOCK_STEP_BITS = 14, /* a stream's events are numbered in steps of 2^14 */
    /* steps that one block can touch */
    SJ_BLOCK_MAX_STEPS = (SJ_BLOCK_MAX_EVENTS >> SJ_BLOCK_STEP_BITS) + 1,
    SJ_BLOCK_MAX_INLINE_FRAMES = 4096,
    /* frames in one DEEP_FRAMES block; deeper stacks need several */
    SJ_BLOCK_MAX_STACK_FRAMES = 64 * 1024,
    SJ_BLOCK_MAX_GAPS = 16 * 1024,
    SJ_BLOCK_MAX_VALUES = 16 * 1024,
    SJ_BLOCK_MAX_TEXT_BYTES = 2 * 1024 * 1024, /* all value texts of the block together */
    SJ_BLOCK_MAX_BYTES = 8 * 1024 * 1024       /* also the limit of one message */
};

typedef enum sj_block_kind {
    SJ_BLOCK_CALLS = 1,
    /* The outermost frames of a deep stack, stored once and referenced by later blocks. It has no
     * events. `first_event` is the block's number in its stream, from 1: other blocks name it in
     * `stack_reference`. `stack_frames` is the depth of its first frame, `open_depth` the depth
     * after its last one. `stack_reference` is the DEEP_FRAMES block with the callers of its first
     * frame.
     *
     * The callee times of the frames stay correct: between a referenced frame and the innermost
     * one, at least one more frame has been open since the block was stored. The header of the
     * referencing block says which frames have gap flags. */
    SJ_BLOCK_DEEP_FRAMES = 2
} sj_block_kind;

typedef enum sj_block_flag {
    SJ_BLOCK_LAST = 1 << 0,     /* the stream has ended: no block follows */
    SJ_BLOCK_RECOVERED = 1 << 1 /* read from the ring of a process that died */
} sj_block_flag;

typedef enum sj_ending {
    SJ_ENDING_RETURNED = 0,
    /* a throw, longjmp or thread exit ended the call; its end is the time of the next event on its
     * stack */
    SJ_ENDING_UNWOUND = 1,
    SJ_ENDING_OPEN = 2,     /* still open when the recording ended */
    SJ_ENDING_TRUNCATED = 3 /* the exit was dropped; the call ended somewhere in a gap */
} sj_ending;

/* Flags of sj_stack_frame and sj_call: why a call's figures are not exact. */
typedef enum sj_call_flag {
    /* open when recording began; the start of the recording counts as its start */
    SJ_CALL_BEFORE_RECORDING = 1 << 0,
    SJ_CALL_GAP = 1 << 1, /* a gap lies within the call: callees and self time are incomplete */
    SJ_CALL_UNCERTAIN_DEPTH = 1 << 2, /* entered after a gap, while the open calls were unknown */
    SJ_CALL_WAITED = 1 << 3,          /* the thread waited for the drain during the call */
    /* No clock was read at its entry or its exit. Its times are estimates between the times of its
     * timed neighbours; nothing is missing. */
    SJ_CALL_UNTIMED = 1 << 4
} sj_call_flag;

/* A call that is open at the start of a block. */
typedef struct sj_stack_frame {
    uint64_t call_index; /* number in the stream */
    uint64_t start_ticks;
    uint64_t child_ticks; /* total duration of the direct callees that have ended */
    /* stack pointer at entry (48 bits); recovery of a killed recording continues with it */
    uint64_t stack;
    uint64_t jumped_ticks; /* when it ended by a tail call to its callee; 0: it has not */
    uint32_t function;     /* session-wide function id */
    uint32_t flags;        /* sj_call_flag */
} sj_stack_frame;

typedef enum sj_gap_reason {
    SJ_GAP_RING_FULL = 1,
    SJ_GAP_NO_THREAD_SLOT = 2,
    SJ_GAP_TORN = 3,   /* slots that were reserved but not written, or not readable after a crash */
    SJ_GAP_PAUSED = 4, /* recording was off */
    SJ_GAP_SPOOL_FULL = 5,
    SJ_GAP_WAITED = 6, /* nothing is lost; the thread waited for the drain */
    SJ_GAP_ORPHAN = 7, /* exits whose entry was not recorded (calls open before recording) */
    /* Nothing is lost. The calls open here were entered before recording began; their ENTERs have
     * the time at which it began. */
    SJ_GAP_BEFORE_RECORDING = 8
} sj_gap_reason;

/* A place where something is missing or unknown: before event `before_event` of the block (from
 * 0). */
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

/* A call entered by a tail call. If `ended` is 0, its caller is the innermost open call. Else its
 * caller is the call that the first of the `ended` LEAVEs right before the ENTER ends. Those LEAVEs
 * exist only because the chain of tail calls was folded (agent/assembler/tail_calls.h): the caller
 * jumped at that time. */
typedef struct sj_block_tail_call {
    uint32_t event; /* number of the ENTER within the block */
    uint32_t ended;
} sj_block_tail_call;

/* The value of an argument or a result. Its call may have been entered in an earlier block. */
typedef struct sj_block_value {
    uint64_t call_index; /* number in the stream */
    uint64_t bits;       /* converted to the value's kind; unused for texts */
    const char *text;    /* borrowed, not NUL-terminated; NULL without a text */
    uint16_t text_bytes; /* at most SJ_VALUE_TEXT_MOST */
    uint16_t rule;       /* 1 + index of the rule whose condition the value met; 0: no rule */
    uint8_t descriptor;  /* position and kind */
    uint8_t note;        /* sj_value_note; texts only */
} sj_block_value;

/* Names of the policy's value rules, in the order in which the values count them. */
typedef struct sj_block_rules {
    size_t count;
    char names[SJ_VALUE_RULES][SJ_VALUE_RULE_BYTES];
} sj_block_rules;

typedef struct sj_block_header {
    uint16_t version;
    uint8_t kind;  /* sj_block_kind */
    uint8_t flags; /* sj_block_flag */
    sj_session_id session;
    uint32_t stream;      /* the device's number of the stream in its session, from 1 */
    uint64_t first_event; /* number of the block's first event in its stream */
    uint64_t first_call;  /* number of the first call entered in the block */
    uint32_t event_count;
    uint32_t call_count;  /* entries among the events */
    uint64_t first_ticks; /* time of the first event; in an empty block, the time of the flush */
    uint64_t last_ticks;  /* time of the last event */
    uint64_t lost_calls;  /* sums over the gaps of the block */
    uint64_t lost_events;
    uint32_t clock_step;      /* all event times are first_ticks plus a multiple of this */
    uint32_t open_depth;      /* calls open at the start */
    uint32_t end_depth;       /* calls open at the end */
    uint32_t stack_reference; /* DEEP_FRAMES block with the outermost frames; 0: none */
    /* frames of that block, and of blocks it references, that are open here */
    uint32_t stack_frames;
    /* Numbers of outermost calls, open at the start, that have a flag; see call_trust.h. */
    uint32_t gap_depth;       /* SJ_CALL_GAP */
    uint32_t waited_depth;    /* SJ_CALL_WAITED */
    uint32_t uncertain_depth; /* may have ended in a gap */
    uint32_t column_count;
} sj_block_header;

/* Column ids. An empty column is left out. */
typedef enum sj_block_column {
    SJ_COLUMN_KEYFRAME = 1,  /* inline frames, outermost first, as columns of varints */
    SJ_COLUMN_FUNCTIONS = 2, /* dictionary: function ids as varints, in order of first use */
    SJ_COLUMN_RUNS = 3,      /* lengths of predicted runs of events, see block_structure.c */
    SJ_COLUMN_TIMES = 4,     /* packed time gaps in clock steps, see block_times.c */
    SJ_COLUMN_ENDINGS = 5,
    SJ_COLUMN_GAPS = 6,
    SJ_COLUMN_MISSES = 7,     /* the events that no run covers */
    SJ_COLUMN_LONG_TIMES = 8, /* the gaps that are too long for SJ_COLUMN_TIMES */
    SJ_COLUMN_VALUE_ROWS = 9, /* the values of older blocks; see block_value_rows.c */
    SJ_COLUMN_RETIRED = 10,   /* skipped; the id must not be used again: README.md */
    /* Older readers skip these columns; see block_tail_calls.c. */
    SJ_COLUMN_JUMPED_FRAMES = 11, /* calls of the key-frame that ended by a tail call, and when */
    SJ_COLUMN_TAIL_SYMBOLS = 12,  /* dictionary entries of ENTERs by a tail call */
    SJ_COLUMN_VALUES = 13,        /* see block_values.c */
    SJ_COLUMN_UNTIMED = 14        /* calls with SJ_CALL_UNTIMED; see block_untimed.c */
} sj_block_column;

typedef enum sj_block_coding { SJ_CODING_RAW = 0, SJ_CODING_ZSTD = 1 } sj_block_coding;

/* An event, as input of the encoder. */
enum { SJ_EVENT_LEAVE = 0, SJ_EVENT_UNTIMED = 1 << 16 };

typedef struct sj_event {
    uint64_t ticks;
    uint32_t function; /* SJ_EVENT_LEAVE, or the function id of an ENTER */
    /* ENTER by a tail call: 1 + `ended` of its sj_block_tail_call, else 0. Plus SJ_EVENT_UNTIMED if
     * the call is SJ_CALL_UNTIMED. */
    uint32_t tail_call;
} sj_event;

/* The input of the encoder. All arrays are borrowed. */
typedef struct sj_block_input {
    sj_block_header header;       /* the encoder fills in counts and sums */
    const sj_stack_frame *frames; /* inline frames: open_depth - stack_frames of them */
    const sj_event *events;
    const sj_block_ending *endings;
    size_t ending_count;
    const sj_gap *gaps;
    size_t gap_count;
    const sj_block_value *values; /* in the order of their events */
    size_t value_count;
    const char *const *rules; /* the values count these names from 1 */
    size_t rule_count;
} sj_block_input;

typedef struct sj_block_encoder sj_block_encoder;

/* Makes an encoder. It takes about 7 MB and is reused from block to block. Not thread-safe. Errors:
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_encoder_new(sj_block_encoder **encoder);
void sj_block_encoder_free(sj_block_encoder *encoder);

/* Encodes one block into `output`, which must hold sj_block_bound(input) bytes, and sets its size.
 * Errors: SJ_EINVAL if events are not balanced, times go backwards or counts exceed the limits;
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_encode(sj_block_encoder *encoder, const sj_block_input *input,
                                        uint8_t *output, size_t capacity, size_t *size_bytes);
size_t sj_block_bound(const sj_block_input *input);

/* How deep the calls of a block are nested, computed from its symbols. */
typedef struct sj_block_depths {
    int64_t lowest;  /* fewest open calls; negative: a LEAVE without an open call */
    int64_t entered; /* most open calls right after an ENTER; 0 without ENTERs */
    int64_t end;     /* open calls at the end */
} sj_block_depths;

/* A decoded block. The decoder owns the arrays; they are valid until its next call. */
typedef struct sj_block {
    sj_block_header header;
    const sj_stack_frame *frames; /* inline frames of the key-frame */
    size_t frame_count;
    /* dictionary; two entries differ in the function, in `tails` or in `untimed` */
    const uint32_t *functions;
    size_t function_count;
    const uint16_t *symbols16; /* one per event: 0 LEAVE, else 1 + dictionary index */
    /* used instead of symbols16 if there are more than 65,534 functions */
    const uint32_t *symbols32;
    const uint64_t *ticks; /* one per event */
    const sj_block_ending *endings;
    size_t ending_count;
    const sj_gap *gaps;
    size_t gap_count;
    const sj_block_value *values;
    size_t value_count;
    const sj_block_rules *rules;
    const uint8_t *tails;   /* by symbol: `tail_call` of its ENTERs; NULL: no tail calls */
    const uint8_t *untimed; /* by symbol: 1 if its ENTERs are untimed; NULL: no untimed calls */
    const sj_block_tail_call *tail_calls; /* in order of events; only with SJ_WANT_TAIL_CALLS */
    size_t tail_call_count;
    sj_block_depths depths; /* valid if `is_checked` */
    /* valid if `is_checked`: one per step that has events of the block */
    const sj_block_depths *steps;
    size_t step_count;
    bool is_checked; /* the decoder has checked symbols, times and depths */
} sj_block;

/* Selects the columns to decode. Header, key-frame, endings, gaps and values are always decoded. */
typedef enum sj_block_want {
    SJ_WANT_STRUCTURE = 1 << 0,
    SJ_WANT_TIMES = 1 << 1,
    SJ_WANT_ALL = SJ_WANT_STRUCTURE | SJ_WANT_TIMES,
    SJ_WANT_TAIL_CALLS = 1 << 2 /* the list of tail calls; needs SJ_WANT_STRUCTURE */
} sj_block_want;

typedef struct sj_block_decoder sj_block_decoder;

/* Makes a decoder, which is reused from block to block. Not thread-safe. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_decoder_new(sj_block_decoder **decoder);
void sj_block_decoder_free(sj_block_decoder *decoder);

/* Checks the checksum and every count, then decodes what `want` names. The bytes may come from an
 * attacker: memory use is bounded by the limits above. Errors: SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT,
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_decode(sj_block_decoder *decoder, sj_slice bytes, unsigned want,
                                        sj_block *block);

/* Returns the depths of a block that has symbols. */
sj_block_depths sj_block_measure_depths(const sj_block *block);

/* Writes the depths of each step of the stream that has events in the block, and returns the depths
 * of the whole block. `steps` needs space for SJ_BLOCK_MAX_STEPS elements. Steps after a LEAVE
 * without an open call are not measured. */
sj_block_depths sj_block_measure_steps(const sj_block *block, sj_block_depths *steps,
                                       size_t *step_count);

/* Changes the session id in an encoded block and updates the checksum. Errors: SJ_ECORRUPT if the
 * bytes are too short for a block. */
SJ_MUST_CHECK sj_status sj_block_set_session(uint8_t *bytes, size_t size,
                                             const sj_session_id *session);

/* Reads and checks only the header, without the checksum. Errors: SJ_ECORRUPT, SJ_EVERSION,
 * SJ_ELIMIT if `bytes` is longer than a block may be. */
SJ_MUST_CHECK sj_status sj_block_read_header(sj_slice bytes, sj_block_header *header);

#endif
