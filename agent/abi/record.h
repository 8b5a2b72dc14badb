/* The raw record: 16 bytes that a probe writes for one entry or one exit of a function.
 *
 *   bytes  0..5   ticks: low 48 bits of the raw clock (rdtsc, cntvct_el0)
 *   bytes  6..11  stack: low 48 bits of the stack pointer, the same at the entry and the exit of a
 *                 call (x86-64: the address of the return address). The exit of a tail call adds
 *                 SJ_STACK_TAIL_CALL. A managed call has an sj_managed_stack instead.
 *   bytes 12..15  kind (top 2 bits) and function id (low 30 bits, never 0); written last
 *
 * A stub writes the record by four plain stores (4 + 2 + 8 + 4 bytes, the last overlaps the third).
 * Measured, they cost as little as one 8-byte store, because reading the clock dominates. A slot
 * whose last word is 0 has not been written. The reader extends ticks to 64 bits. It reads at least
 * every few seconds, and 48 bits last 30 hours at 2.6 GHz.
 *
 * The 16 bytes of a slot can hold four short records instead, of 4 bytes each. A short record is an
 * entry or an exit without a clock. Functions whose calls are counted rather than timed
 * (`calls.clock` of the policy) have short records:
 *
 *   bits 29..31   5, or 7 for the exit of a tail call
 *   bit  28       1: an exit
 *   bits 16..27   stack: bits 3..14 of the stack pointer (arenas of version 3: of its distance to
 *                 the low end of the thread's own stack)
 *   bits  0..15   function id; 0: filler
 *
 * Function ids of whole records are below SJ_RECORD_FUNCTIONS_END. So the last word of a slot shows
 * whether the slot holds short records.
 *
 * Before a thread writes a whole record, it completes a partly used slot with fillers. */
#ifndef SJ_AGENT_ABI_RECORD_H
#define SJ_AGENT_ABI_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    SJ_RECORD_BYTES = 16,
    SJ_RECORD_FUNCTION_BITS = 30,
    SJ_RECORD_FUNCTION_MASK = (1 << SJ_RECORD_FUNCTION_BITS) - 1,
    /* Function ids are less than this. */
    SJ_RECORD_FUNCTIONS_END = 1 << (SJ_RECORD_FUNCTION_BITS - 1)
};

typedef enum sj_record_kind {
    SJ_RECORD_ENTER = 0,
    SJ_RECORD_LEAVE = 1,
    SJ_RECORD_NOTE = 2, /* not a call: the function id is an sj_note, `stack` its argument */
    /* A value, in bytes 0..7. It precedes the entry or exit of the same function with the same
     * stack pointer. From byte 8 on, the low bits of the stack pointer follow. Their lowest three
     * bits, always 0 in an address, hold the sj_record_part. */
    SJ_RECORD_VALUE = 3
} sj_record_kind;

/* A runtime may move its frames (JIT inlining, OSR, trampolines), so its calls have no stack
 * address. Their entries and exits are matched by function and order, on the thread's own stack. An
 * sj_managed_stack replaces the address. */
typedef enum sj_managed_stack {
    SJ_MANAGED_CALL = 0,   /* an entry, or an exit by return */
    SJ_MANAGED_THROWN = 1, /* an exit by an exception that the call did not catch */
    /* An exit by an exception that can be raised at any instruction (an aborted thread, a full
     * stack). The entry may not have been recorded yet, or the exit may have been recorded already.
     */
    SJ_MANAGED_INTERRUPTED = 2,
    /* An exception has left a frame whose code may be hooked in place. If the code is hooked, the
     * entry has a stack address, which the agent does not know here. If the code is not hooked,
     * there is no call to end. */
    SJ_MANAGED_PASSED = 3
} sj_managed_stack;

/* Bit in the stack of an exit, always 0 in an address. The call ended by a tail call: a jump to the
 * start of a function that was hooked at that moment. The next record on this stack is the entry of
 * that function. Only probes that know the target set the bit. */
enum { SJ_STACK_TAIL_CALL = 1 };

/* Bit in the stack of an entry or an exit. The probe did not read the clock, so the ticks are
 * meaningless. */
enum { SJ_STACK_UNTIMED = 2 };

/* Constants of short records. A thread writes short records only for frames on its own stack that
 * are at most SJ_SHORT_REACH_BYTES from the frame of its latest whole record.
 *
 * A signal handler that interrupts a probe may write a later whole record, which the probe does not
 * know. The rest of the 32 KiB that 12 bits can address allows for the handler's frames. */
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
    /* Between functions of one file, compilers may align the stack pointer to only this many bytes.
     */
    SJ_STACK_ALIGNMENT = 8
};
#define SJ_SHORT_FILLER ((uint32_t)SJ_SHORT_MARK << SJ_SHORT_MARK_BIT)
#define SJ_SHORT_TAIL_CALL                                                                         \
    ((uint32_t)SJ_SHORT_TAIL_CALL_MARK << SJ_SHORT_MARK_BIT | UINT32_C(1) << SJ_SHORT_EXIT_BIT)

/* Content of an SJ_RECORD_VALUE. The first record of a text holds the length of the text and, from
 * bit 8 on, its sj_value_note. The bytes of the text follow, eight per record. */
typedef enum sj_record_part {
    SJ_PART_RECEIVER = 0, /* the receiver's class; bytes 8..11: low bits of the stack pointer */
    SJ_PART_VALUE = 1,    /* bytes 8..10: low bits of the stack pointer, 11: sj_value_descriptor */
    /* the text of a value; bytes 8..11 as for SJ_PART_VALUE, also in the next two parts */
    SJ_PART_TEXT = 2,
    SJ_PART_CHANGED = 3, /* a value that a rule changed; the next record is an SJ_PART_RULE */
    SJ_PART_RULE = 4     /* index of the rule in the policy */
} sj_record_part;

enum { SJ_RECORD_PART_MASK = 7, SJ_RECORD_VALUE_STACK_MASK = 0xfffff8 };

/* Notes: other events of a thread, in order with its entries and exits. */
typedef enum sj_note {
    SJ_NOTE_DROPPED_CALLS = 1, /* argument: entries dropped since the previous record */
    /* argument: records of all kinds dropped since the previous record; follows
     * SJ_NOTE_DROPPED_CALLS */
    SJ_NOTE_DROPPED_EVENTS = 2,
    SJ_NOTE_WAITED = 3, /* argument: ticks that the thread waited for the drain */
    /* argument: index in the arena's mark table, also for SJ_NOTE_MARK_END */
    SJ_NOTE_MARK_BEGIN = 4,
    SJ_NOTE_MARK_END = 5,
    SJ_NOTE_UNWOUND = 6,   /* argument: a stack address; every call at a lower address has ended */
    SJ_NOTE_RECORDING = 7, /* argument: 1 on, 0 off; calls while it is off are not recorded */
    SJ_NOTE_REQUEST = 8,   /* argument: sj_request of the program to the recorder */
    /* From here on, the records describe all open calls of the thread's own stack again. The note
     * follows SJ_NOTE_DROPPED_EVENTS, SJ_NOTE_UNWOUND, and the entries of open calls that began
     * among the dropped records. */
    SJ_NOTE_STACK_KNOWN = 9,
    /* Argument: the low end of an alternate stack that lies inside the thread's own stack. A signal
     * handler begins on it. 0: the handler has returned. */
    SJ_NOTE_ALTERNATE_LOW = 10,
    SJ_NOTE_ALTERNATE_HIGH = 11 /* argument: the high end; follows SJ_NOTE_ALTERNATE_LOW */
} sj_note;

typedef enum sj_request {
    SJ_REQUEST_START = 1,
    SJ_REQUEST_STOP = 2,
    SJ_REQUEST_DUMP = 3,
    SJ_REQUEST_VSYNC = 4, /* a frame begins */
    /* The agent itself makes the next two requests. */
    SJ_REQUEST_WOKE = 5, /* the thread has waited for events */
    SJ_REQUEST_WAIT = 6  /* the thread is about to wait for events */
} sj_request;

typedef struct sj_record {
    uint8_t bytes[SJ_RECORD_BYTES];
} sj_record;

/* Returns the last word of a record. `function` is a function id or, for SJ_RECORD_NOTE, an
 * sj_note. */
static inline uint32_t sj_record_make_tag(sj_record_kind kind, uint32_t function)
{
    return (uint32_t)kind << SJ_RECORD_FUNCTION_BITS | function;
}

/* Returns a record of the low 48 bits of the ticks, the low 48 bits of the stack, and a tag. */
static inline sj_record sj_record_make(uint64_t ticks48, uint64_t stack, uint32_t tag)
{
    sj_record record;
    /* not libc's memcpy, which may be recorded itself */
    __builtin_memcpy(record.bytes, &ticks48, 6);
    __builtin_memcpy(record.bytes + 6, &stack, 6);
    __builtin_memcpy(record.bytes + 12, &tag, sizeof(tag));
    return record;
}

/* Returns the number of calls that a record with this tag begins: 1 or 0. */
static inline uint32_t sj_record_calls(uint32_t tag)
{
    return tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER ? 1 : 0;
}

/* True if a word is a short record, or the last word of a slot that holds short records. */
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

/* In arenas of version 3, short records hold distances. Returns the address from which the
 * distances are measured, for a stack whose low end is `stack_low`. */
static inline uint64_t sj_short_base(uint64_t stack_low)
{
    return stack_low & ~(uint64_t)(SJ_STACK_ALIGNMENT - 1);
}

/* Returns the stack address (or distance) of a short record: of all values with its 12 bits, the
 * one nearest to `last`. */
static inline uint64_t sj_short_stack(uint32_t word, uint64_t last)
{
    const uint64_t low = (word >> SJ_SHORT_STACK_BIT & 0xfff) * SJ_STACK_ALIGNMENT;
    const uint64_t ahead = (low - last) & (SJ_SHORT_WINDOW_BYTES - 1);
    return ahead < SJ_SHORT_WINDOW_BYTES / 2 ? last + ahead : last + ahead - SJ_SHORT_WINDOW_BYTES;
}

static inline uint32_t sj_record_word(const sj_record *record, uint32_t place)
{
    uint32_t word;
    __builtin_memcpy(&word, record->bytes + (size_t)place * SJ_SHORT_BYTES, sizeof(word));
    return word;
}

static inline uint64_t sj_record_ticks48(const sj_record *record)
{
    uint64_t word;
    __builtin_memcpy(&word, record->bytes, sizeof(word));
    return word & ((UINT64_C(1) << 48) - 1);
}

static inline uint64_t sj_record_stack(const sj_record *record)
{
    uint64_t word;
    __builtin_memcpy(&word, record->bytes + 4, sizeof(word));
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

/* True if an exit with this stack ended by a tail call. */
static inline bool sj_record_is_tail_call(uint64_t stack)
{
    return !sj_record_is_managed(stack) && (stack & SJ_STACK_TAIL_CALL) != 0;
}

/* Returns the stack of an entry or an exit without SJ_STACK_TAIL_CALL and SJ_STACK_UNTIMED. */
static inline uint64_t sj_record_frame(const sj_record *record)
{
    const uint64_t stack = sj_record_stack(record);
    return sj_record_is_managed(stack) ? stack
                                       : stack & ~(uint64_t)(SJ_STACK_TAIL_CALL | SJ_STACK_UNTIMED);
}

static inline uint64_t sj_record_value(const sj_record *record)
{
    uint64_t value;
    __builtin_memcpy(&value, record->bytes, sizeof(value));
    return value;
}

static inline uint32_t sj_record_value_stack(const sj_record *record)
{
    uint32_t stack;
    __builtin_memcpy(&stack, record->bytes + 8, sizeof(stack));
    return stack;
}

static inline uint32_t sj_record_part_of(const sj_record *record)
{
    return sj_record_value_stack(record) & SJ_RECORD_PART_MASK;
}

static inline uint32_t sj_record_tag(const sj_record *record)
{
    uint32_t tag;
    __builtin_memcpy(&tag, record->bytes + 12, sizeof(tag));
    return tag;
}

#endif
