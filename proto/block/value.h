/* Values of calls: what a policy asks of arguments and results, from the probe to the store.
 *
 * A descriptor is one byte: the position in its low half, the kind in its high half; 0 is none. */
#ifndef SJ_PROTO_BLOCK_VALUE_H
#define SJ_PROTO_BLOCK_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* How the bits are to be understood: C types as they are passed in registers. */
typedef enum sj_value_kind {
    SJ_VALUE_INT = 1,  /* 32 bits */
    SJ_VALUE_UINT = 2, /* 32 bits */
    SJ_VALUE_LONG = 3,
    SJ_VALUE_ULONG = 4,
    SJ_VALUE_CHAR = 5, /* 8 bits, signed */
    SJ_VALUE_BOOL = 6,
    SJ_VALUE_HEX = 7, /* 64 bits */
    SJ_VALUE_POINTER = 8,
    SJ_VALUE_FLOAT = 9,
    SJ_VALUE_DOUBLE = 10,
    SJ_VALUE_STRING = 11, /* the text that a pointer leads to */
    SJ_VALUE_OBJECT = 12, /* as its runtime names it, in text: constants of enums, types of objects,
                             lengths of arrays, fields */
    SJ_VALUE_THROWN = 13, /* no rule's: the type of the exception that ended the call, in text */
    SJ_VALUE_COST = 14,   /* what the call has cost; its position is an sj_value_cost. In a record:
                             sj_cost_reading, what the thread's counter stands at */
    SJ_VALUE_ERRNO = 15   /* errno at the exit */
} sj_value_kind;

/* What a call cost, in this order. */
typedef enum sj_value_cost {
    SJ_COST_FUNCTION = 0, /* the session's id of the function */
    SJ_COST_CPU_NS = 1,   /* CPU time of its thread */
    SJ_COST_SELF_NS = 2,  /* without that of the calls below whose cost is measured, too */
    SJ_COST_NESTED = 3,   /* 1: within a call of the same function */
    /* By its thread while it ran, in the heap of its runtime or by the allocator; then the same
     * without calls below that are measured, too. */
    SJ_COST_ALLOCATED_BYTES = 4,
    SJ_COST_ALLOCATIONS = 5,
    SJ_COST_FREES = 6,
    SJ_COST_FREED_BYTES = 7,
    SJ_COST_SELF_ALLOCATED_BYTES = 8,
    SJ_COST_SELF_ALLOCATIONS = 9,
    SJ_COST_SELF_FREES = 10,
    SJ_COST_SELF_FREED_BYTES = 11,
    SJ_COSTS = 12
} sj_value_cost;

/* The counters of a thread that are read at the entries and exits of calls. */
typedef enum sj_cost_counter {
    SJ_COUNTER_CPU_NS = 0,
    SJ_COUNTER_ALLOCATED_BYTES = 1,
    SJ_COUNTER_ALLOCATIONS = 2,
    SJ_COUNTER_FREES = 3,
    SJ_COUNTER_FREED_BYTES = 4,
    SJ_COUNTERS = 5
} sj_cost_counter;

enum {
    SJ_VALUE_KINDS = 16,         /* one more than the highest */
    SJ_VALUE_RULE_KINDS = 13,    /* that rules may ask for */
    SJ_VALUE_RESULT = 0,         /* the position of what a call returns */
    SJ_VALUE_LAST_POSITION = 15, /* of an argument in source order; they are numbered from 1 */
    SJ_VALUE_LAST_REGISTER = 8,  /* that rules by register may ask for, likewise */
    SJ_VALUES_PER_FUNCTION = 16, /* that rules may ask for */
    SJ_VALUE_TEXT_BYTES = 64,    /* of a text are kept, where no rule asks for more */
    SJ_VALUE_TEXT_MOST = 4096,   /* that a rule may ask for */
    SJ_VALUE_RULES = 256,        /* of a policy */
    SJ_VALUE_RULE_BYTES = 64     /* of a rule's name, with its end */
};

/* Places: descriptors by which a plan tells the probe where a value is. Positions count the
 * registers of a class; those behind the last register are words on the stack. Beside the kinds
 * above there are some that the probe records as SJ_VALUE_STRING. */
enum {
    SJ_PLACE_STACK = 9, /* the position of the first word on the stack, up to 15 */
    SJ_PLACE_STACK_WORDS = 7,
    SJ_PLACES_PER_FUNCTION = 20,
    SJ_PLACE_CPU_ENTRY = 1,    /* no place of a value: the thread's CPU time is recorded */
    SJ_PLACE_CPU_EXIT = 2,     /* likewise; of probes only: a plan has the former for both */
    SJ_PLACE_MEMORY_ENTRY = 3, /* likewise: what the thread has allocated and freed */
    SJ_PLACE_MEMORY_EXIT = 4,
    SJ_PLACE_ERRNO = 5, /* likewise: errno at the exit */
    SJ_PLACE_LIMIT = 5, /* likewise: 6 to 11: of texts behind it, twice as many bytes for
                           each above this are recorded as otherwise */
    SJ_PLACE_LIMIT_MOST = 11,
    SJ_PLACE_LENGTH = 12,      /* likewise: the next place holds the length of the text behind it */
    SJ_PLACE_WORDS = 13,       /* likewise: the next is no place but a number of words, which are
                                  recorded as a text where the place behind it leads to */
    SJ_PLACE_FILLED = 14,      /* likewise: the next place holds the address of a buffer that the
                                  function fills; the text behind it is recorded at the exit, and its
                                  result, a number of 64 bits, is how many bytes it has */
    SJ_PLACE_FILLED_INT = 15,  /* likewise, of 32 bits */
    SJ_PLACE_MOST_WORDS = 191, /* behind SJ_PLACE_WORDS */
    SJ_PLACE_GIVEN_WORDS = 192, /* there, above it: so many words where the address leads that the
                                   caller gave for the result, which the exit does not have; none:
                                   the place says what is there */
    SJ_PLACE_GIVEN_MOST = 239,
    SJ_PLACE_OWN_WORDS = 240, /* there, above it: so many words of the place itself: of the stack,
                                 or of registers of a result, in the order of sj_result_word */
    SJ_PLACE_RESULT_ADDRESS = 1, /* behind SJ_PLACE_FILLED, of probes only: that address is kept */
    SJ_PLACE_VECTOR = 12,        /* kind, with two words of its own: a whole vector register */
    SJ_PLACE_LENGTH_TEXT = 13,   /* kind: two registers with a text's length and its address */
    SJ_PLACE_TEXT_LENGTH = 14,   /* kind: two registers with its address and its length */
    SJ_PLACE_TEXT_AT = 15        /* kind: the address of its address and its length */
};

/* Where a result may be, in words; the second halves of vector registers are none. */
typedef enum sj_result_word {
    SJ_RESULT_WHOLE = 0,
    SJ_RESULT_SECOND = 1,
    SJ_RESULT_REAL = 2,     /* four of them */
    SJ_RESULT_EXTENDED = 6, /* two, of a long double: the top of the stack of the x87, or a whole
                               vector register */
    SJ_RESULT_WORDS = 8
} sj_result_word;

/* What is to be said of a text. */
typedef enum sj_value_note {
    SJ_VALUE_WHOLE = 0,
    SJ_VALUE_CUT = 1,        /* it goes on */
    SJ_VALUE_UNREADABLE = 2, /* the pointer leads to no memory, or the kernel does not say */
    SJ_VALUE_NULL = 3        /* the pointer is null */
} sj_value_note;

static inline uint8_t sj_value_descriptor(uint32_t position, uint32_t kind)
{
    return (uint8_t)(position | kind << 4);
}

static inline uint32_t sj_value_position(uint8_t descriptor)
{
    return descriptor & 15;
}

static inline uint32_t sj_value_kind_of(uint8_t descriptor)
{
    return descriptor >> 4;
}

/* sj_place_is_limit: the place says how long the texts behind it may be. */
static inline bool sj_place_is_limit(uint8_t place)
{
    return place > SJ_PLACE_LIMIT && place <= SJ_PLACE_LIMIT_MOST;
}

/* sj_place_is_filled: the text that comes after the next place is recorded at the exit. */
static inline bool sj_place_is_filled(uint8_t place)
{
    return place == SJ_PLACE_FILLED || place == SJ_PLACE_FILLED_INT;
}

/* sj_place_is_size: what comes next is no value, but says where the text that comes then is, or how
 * long. */
static inline bool sj_place_is_size(uint8_t place)
{
    return place == SJ_PLACE_LENGTH || place == SJ_PLACE_WORDS || sj_place_is_filled(place);
}

/* sj_place_is_given: what SJ_PLACE_WORDS says is about a result at an address of the caller's. */
static inline bool sj_place_is_given(uint8_t size, uint8_t words)
{
    return size == SJ_PLACE_WORDS && words >= SJ_PLACE_GIVEN_WORDS && words <= SJ_PLACE_GIVEN_MOST;
}

/* sj_place_limit returns the limit that reaches `bytes`; 0: what texts have otherwise does. */
static inline uint8_t sj_place_limit(uint32_t bytes)
{
    uint8_t place = SJ_PLACE_LIMIT;
    while (place < SJ_PLACE_LIMIT_MOST &&
           (uint32_t)SJ_VALUE_TEXT_BYTES << (place - SJ_PLACE_LIMIT) < bytes) {
        place++;
    }
    return place != SJ_PLACE_LIMIT ? place : 0;
}

/* A text's length and its note are one number in the first of its records. */
static inline uint64_t sj_value_text_head(uint64_t length, sj_value_note note)
{
    return (length & 0xff) | (uint64_t)note << 8 | length >> 8 << 16;
}

static inline uint64_t sj_value_text_length(uint64_t head)
{
    return (head & 0xff) | head >> 16 << 8;
}

static inline uint32_t sj_value_text_note(uint64_t head)
{
    return head >> 8 & 0xff;
}

/* sj_cost_reading is the position of a counter's reading in a record. */
static inline uint32_t sj_cost_reading(sj_cost_counter counter, bool at_entry)
{
    return 2 * (uint32_t)counter + (at_entry ? 1 : 0);
}

/* sj_value_is_at_exit: a record of this descriptor belongs to the exit that follows it. */
static inline bool sj_value_is_at_exit(uint8_t descriptor)
{
    return sj_value_kind_of(descriptor) == SJ_VALUE_COST
               ? sj_value_position(descriptor) % 2 == 0
               : sj_value_position(descriptor) == SJ_VALUE_RESULT;
}

static inline bool sj_value_is_sound(uint8_t descriptor)
{
    const uint32_t kind = sj_value_kind_of(descriptor);
    return kind != 0 && (kind != SJ_VALUE_ERRNO || sj_value_position(descriptor) == 0);
}

static inline bool sj_value_is_text(uint32_t kind)
{
    return kind == SJ_VALUE_STRING || kind == SJ_VALUE_OBJECT || kind == SJ_VALUE_THROWN;
}

static inline bool sj_value_is_real(uint32_t kind)
{
    return kind == SJ_VALUE_FLOAT || kind == SJ_VALUE_DOUBLE;
}

static inline bool sj_value_is_signed(uint32_t kind)
{
    return kind == SJ_VALUE_INT || kind == SJ_VALUE_LONG || kind == SJ_VALUE_CHAR;
}

/* sj_value_narrow leaves of a register's bits what its kind means: the others are anything. */
static inline uint64_t sj_value_narrow(uint32_t kind, uint64_t bits)
{
    switch (kind) {
    case SJ_VALUE_INT:
        return (uint64_t)(int64_t)(int32_t)bits;
    case SJ_VALUE_CHAR:
        return (uint64_t)(int64_t)(int8_t)bits;
    case SJ_VALUE_UINT:
    case SJ_VALUE_FLOAT:
        return (uint32_t)bits;
    case SJ_VALUE_BOOL:
        return (uint8_t)bits != 0;
    default:
        return bits;
    }
}

#endif
