/* The raw record: 16 bytes that a probe writes for one entry or one exit of a function.
 *
 *   bytes  0..5   ticks: low 48 bits of the raw clock (rdtsc, cntvct_el0)
 *   bytes  6..11  stack: low 48 bits of the stack pointer, which at entry and at exit of the same
 *                 activation is the same address (that of the return address on x86-64); of an exit
 *                 by a tail call, plus SJ_STACK_TAIL_CALL; of a managed call an sj_managed_stack
 *                 instead
 *   bytes 12..15  kind (top 2 bits) and function id (low 30 bits, never 0); written last
 *
 * A stub stores them as four plain stores (4 + 2 + 8 + 4 bytes, the last overlapping the third),
 * measured as cheap as one 8-byte record, because the clock instruction dominates.
 * A slot whose last word is 0 has not been written. Ticks are made 64-bit by the reader, which
 * drains at least every few seconds while 48 bits last 30 hours at 2.6 GHz.
 *
 * In place of one, four short records may stand: entries and exits without a clock, of functions
 * whose calls are counted rather than timed (`calls.clock` of the policy). 4 bytes each:
 *
 *   bits 29..31   5, or 7 of an exit by a tail call, so that the last of four is no tag of a record
 *                 (ids are below SJ_RECORD_FUNCTIONS_END)
 *   bit  28       1: an exit
 *   bits 16..27   stack: bits 3..14 of its address (in arenas of version 3 of its distance to the
 *                 end of the thread's own stack)
 *   bits  0..15   function id; 0: nothing, where the place had to be filled
 *
 * A place of which a part is taken is filled up before a whole record is written. */
#ifndef SJ_AGENT_ABI_RECORD_H
#define SJ_AGENT_ABI_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    SJ_RECORD_BYTES = 16,
    SJ_RECORD_FUNCTION_BITS = 30,
    SJ_RECORD_FUNCTION_MASK = (1 << SJ_RECORD_FUNCTION_BITS) - 1,
    SJ_RECORD_FUNCTIONS_END = 1 << (SJ_RECORD_FUNCTION_BITS - 1) /* ids of functions are below */
};

typedef enum sj_record_kind {
    SJ_RECORD_ENTER = 0,
    SJ_RECORD_LEAVE = 1,
    SJ_RECORD_NOTE = 2, /* not a call: `function` is a sj_note, `stack` its argument */
    /* In front of the entry or the exit of the same function at the same stack pointer, when the
     * plan asks: a value, in bytes 0..7. The low bits of the stack pointer follow, of which the
     * lowest three, always 0 in an address, hold its sj_record_part. */
    SJ_RECORD_VALUE = 3
} sj_record_kind;

/* The calls of a runtime that moves its frames (JIT inlining, OSR, trampolines) bear no address:
 * they are matched by order and function, on the thread's own stack. What stands in its place: */
typedef enum sj_managed_stack {
    SJ_MANAGED_CALL = 0,   /* an entry, or an exit by return */
    SJ_MANAGED_THROWN = 1, /* an exit by an exception that the call did not catch */
    /* The same, by one that was raised between any two instructions (an aborted thread, a full
     * stack): the frame that it hit may not have told of its entry yet, or of its exit already. */
    SJ_MANAGED_INTERRUPTED = 2,
    /* An exception has left a frame whose code may be hooked in place. If it is, its entry bears an
     * address, which who reports this does not know; if not, there is no call to end. */
    SJ_MANAGED_PASSED = 3
} sj_managed_stack;

/* In the stack of an exit: the call ended by a jump to the start of a function that was hooked at
 * that moment (a tail call), whose entry is the next thing to happen on this stack. Only what knows
 * the function jumped to sets it. It is 0 in an address. */
enum { SJ_STACK_TAIL_CALL = 1 };

/* In the stack of an entry or an exit: it was made without a clock, and its ticks say nothing. */
enum { SJ_STACK_UNTIMED = 2 };

/* Short records. They lie within SJ_SHORT_REACH_BYTES that the last whole record on the thread's
 * own stack lies in the middle of, as the thread knows it. A handler that interrupts a probe may
 * have been last in the thread's order and not in its knowledge; the rest of the 32 KiB that the
 * bits tell apart is for its frames. */
enum {
    SJ_SHORT_MARK = 5,
    SJ_SHORT_TAIL_CALL_MARK = 7,
    SJ_SHORT_MARK_BIT = 29,
    SJ_SHORT_EXIT_BIT = 28,
    SJ_SHORT_STACK_BIT = 16,
    SJ_SHORT_FUNCTIONS = 1 << 16,
    SJ_SHORT_BYTES = 4,
    SJ_SHORTS = SJ_RECORD_BYTES / SJ_SHORT_BYTES,
    SJ_SHORT_REACH_BYTES = 8 * 1024,
    SJ_SHORT_WINDOW_BYTES = 32 * 1024,
    SJ_STACK_ALIGNMENT = 8 /* compilers keep no more between functions of a file */
};
#define SJ_SHORT_FILLER ((uint32_t)SJ_SHORT_MARK << SJ_SHORT_MARK_BIT)
#define SJ_SHORT_TAIL_CALL                                                                         \
    ((uint32_t)SJ_SHORT_TAIL_CALL_MARK << SJ_SHORT_MARK_BIT | UINT32_C(1) << SJ_SHORT_EXIT_BIT)

/* What an SJ_RECORD_VALUE holds. Of a text, the first record holds its length and, from bit 8 on,
 * its sj_value_note; its bytes follow, eight a record. */
typedef enum sj_record_part {
    SJ_PART_RECEIVER = 0, /* the receiver's class; bytes 8..11: low bits of the stack pointer */
    SJ_PART_VALUE = 1,    /* bytes 8..10: low bits of the stack pointer, 11: sj_value_descriptor */
    SJ_PART_TEXT = 2,     /* likewise */
    SJ_PART_CHANGED = 3,  /* likewise: what a rule made of it; the next record says which */
    SJ_PART_RULE = 4      /* likewise: that rule's place among the policy's */
} sj_record_part;

enum { SJ_RECORD_PART_MASK = 7, SJ_RECORD_VALUE_STACK_MASK = 0xfffff8 };

/* Notes: other events of a thread, in their order among its calls. */
typedef enum sj_note {
    SJ_NOTE_DROPPED_CALLS = 1,  /* argument: entries dropped since the previous record */
    SJ_NOTE_DROPPED_EVENTS = 2, /* argument: all records dropped since then; follows the former */
    SJ_NOTE_WAITED = 3,         /* argument: ticks that the thread waited for the drain */
    SJ_NOTE_MARK_BEGIN = 4,     /* argument: index in the arena's mark table */
    SJ_NOTE_MARK_END = 5,
    SJ_NOTE_UNWOUND = 6,   /* argument: stack address; every activation below it has ended */
    SJ_NOTE_RECORDING = 7, /* argument: 1 on, 0 off: activations are unknown in between */
    SJ_NOTE_REQUEST = 8,   /* argument: sj_request, of the program to the recorder */
    /* After SJ_NOTE_DROPPED_EVENTS, an SJ_NOTE_UNWOUND, and the entries of calls that began among
     * the dropped records and are open: the open calls of the thread's own stack are complete. */
    SJ_NOTE_STACK_KNOWN = 9
} sj_note;

typedef enum sj_request {
    SJ_REQUEST_START = 1,
    SJ_REQUEST_STOP = 2,
    SJ_REQUEST_DUMP = 3,
    SJ_REQUEST_VSYNC = 4, /* a frame begins */
    /* of the agent itself: */
    SJ_REQUEST_WOKE = 5, /* the thread has waited for events */
    SJ_REQUEST_WAIT = 6  /* it is about to wait for events */
} sj_request;

typedef struct sj_record {
    uint8_t bytes[SJ_RECORD_BYTES];
} sj_record;

/* sj_record_make_tag is the last word of a record of a function (or of a sj_note). */
static inline uint32_t sj_record_make_tag(sj_record_kind kind, uint32_t function)
{
    return (uint32_t)kind << SJ_RECORD_FUNCTION_BITS | function;
}

/* sj_record_make is a record: 48 bits of its time, 48 of its stack, and its tag. */
static inline sj_record sj_record_make(uint64_t ticks48, uint64_t stack, uint32_t tag)
{
    sj_record record;
    memcpy(record.bytes, &ticks48, 6);
    memcpy(record.bytes + 6, &stack, 6);
    memcpy(record.bytes + 12, &tag, sizeof(tag));
    return record;
}

/* sj_record_calls is how many calls a record with this tag begins: 1 or 0. */
static inline uint32_t sj_record_calls(uint32_t tag)
{
    return tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER ? 1 : 0;
}

/* sj_word_is_short: a word is a short record, or the last of a place that holds such. */
static inline bool sj_word_is_short(uint32_t word)
{
    return (word >> SJ_SHORT_MARK_BIT & SJ_SHORT_MARK) == SJ_SHORT_MARK;
}

static inline bool sj_short_is_tail_call(uint32_t word)
{
    return word >> SJ_SHORT_MARK_BIT == SJ_SHORT_TAIL_CALL_MARK;
}

static inline uint32_t sj_short_function(uint32_t word)
{
    return word & (SJ_SHORT_FUNCTIONS - 1);
}

static inline bool sj_short_is_exit(uint32_t word)
{
    return (word >> SJ_SHORT_EXIT_BIT & 1) != 0;
}

/* sj_short_base is what distances in arenas of version 3 are from, on a stack that ends at
 * `stack_low`. */
static inline uint64_t sj_short_base(uint64_t stack_low)
{
    return stack_low & ~(uint64_t)(SJ_STACK_ALIGNMENT - 1);
}

/* sj_short_stack completes the stack address (or the distance) in a short record, which is near to
 * `last`. */
static inline uint64_t sj_short_stack(uint32_t word, uint64_t last)
{
    const uint64_t low = (word >> SJ_SHORT_STACK_BIT & 0xfff) * SJ_STACK_ALIGNMENT;
    const uint64_t ahead = (low - last) & (SJ_SHORT_WINDOW_BYTES - 1);
    return ahead < SJ_SHORT_WINDOW_BYTES / 2 ? last + ahead : last + ahead - SJ_SHORT_WINDOW_BYTES;
}

static inline uint32_t sj_record_word(const sj_record *record, uint32_t place)
{
    uint32_t word;
    memcpy(&word, record->bytes + (size_t)place * SJ_SHORT_BYTES, sizeof(word));
    return word;
}

static inline uint64_t sj_record_ticks48(const sj_record *record)
{
    uint64_t word;
    memcpy(&word, record->bytes, sizeof(word));
    return word & ((UINT64_C(1) << 48) - 1);
}

static inline uint64_t sj_record_stack(const sj_record *record)
{
    uint64_t word;
    memcpy(&word, record->bytes + 4, sizeof(word));
    return word >> 16;
}

static inline bool sj_record_is_managed(uint64_t stack)
{
    return stack <= SJ_MANAGED_PASSED;
}

static inline bool sj_record_is_untimed(uint64_t stack)
{
    return !sj_record_is_managed(stack) && (stack & SJ_STACK_UNTIMED) != 0;
}

/* sj_record_is_tail_call: an exit with this stack was a tail call. */
static inline bool sj_record_is_tail_call(uint64_t stack)
{
    return !sj_record_is_managed(stack) && (stack & SJ_STACK_TAIL_CALL) != 0;
}

/* sj_record_frame is the stack of an entry or an exit without marks. */
static inline uint64_t sj_record_frame(const sj_record *record)
{
    const uint64_t stack = sj_record_stack(record);
    return sj_record_is_managed(stack) ? stack
                                       : stack & ~(uint64_t)(SJ_STACK_TAIL_CALL | SJ_STACK_UNTIMED);
}

static inline uint64_t sj_record_value(const sj_record *record)
{
    uint64_t value;
    memcpy(&value, record->bytes, sizeof(value));
    return value;
}

static inline uint32_t sj_record_value_stack(const sj_record *record)
{
    uint32_t stack;
    memcpy(&stack, record->bytes + 8, sizeof(stack));
    return stack;
}

static inline uint32_t sj_record_part_of(const sj_record *record)
{
    return sj_record_value_stack(record) & SJ_RECORD_PART_MASK;
}

static inline uint32_t sj_record_tag(const sj_record *record)
{
    uint32_t tag;
    memcpy(&tag, record->bytes + 12, sizeof(tag));
    return tag;
}

#endif
