/* Values of calls: the arguments, results and costs that a policy selects. Probes, recorder and
 * collector use these definitions.
 *
 * A descriptor is one byte that names a value of a call. Its low half is the position: 0 for the
 * result, or the number of an argument. Its high half is the kind. The descriptor 0 is invalid. */
#ifndef SJ_PROTO_BLOCK_VALUE_H
#define SJ_PROTO_BLOCK_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* The type of a value's bits: mostly C types, as calls pass them in registers. */
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
    SJ_VALUE_STRING = 11, /* the text at the address that the value holds */
    /* text that describes an enum constant, an object's type, an array's length or fields */
    SJ_VALUE_OBJECT = 12,
    /* text: type of the exception that ended the call; recorded without a rule */
    SJ_VALUE_THROWN = 13,
    /* A cost of the call. The position in a block is an sj_value_cost. The position in a probe's
     * record is from sj_cost_reading, and the bits are the thread's counter. */
    SJ_VALUE_COST = 14,
    SJ_VALUE_ERRNO = 15 /* errno at the exit; the position is 0 */
} sj_value_kind;

/* The costs of a call, in the order in which they are stored. */
typedef enum sj_value_cost {
    SJ_COST_FUNCTION = 0, /* session-wide function id */
    SJ_COST_CPU_NS = 1,   /* CPU time of the thread during the call */
    SJ_COST_SELF_NS = 2,  /* CPU time without the measured callees */
    SJ_COST_NESTED = 3,   /* 1: an open call of the same function contains the call; else 0 */
    /* Memory that the thread allocated and freed during the call, with malloc or in the heap of
     * its runtime. The SELF costs leave out the measured callees. */
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

/* Counters of a thread. Probes read them at entries and exits of measured calls. */
typedef enum sj_cost_counter {
    SJ_COUNTER_CPU_NS = 0,
    SJ_COUNTER_ALLOCATED_BYTES = 1,
    SJ_COUNTER_ALLOCATIONS = 2,
    SJ_COUNTER_FREES = 3,
    SJ_COUNTER_FREED_BYTES = 4,
    SJ_COUNTERS = 5
} sj_cost_counter;

enum {
    SJ_VALUE_KINDS = 16,      /* 1 + the highest kind */
    SJ_VALUE_RULE_KINDS = 13, /* 1 + the highest kind that a rule can name */
    SJ_VALUE_RESULT = 0,      /* the position of a call's result */
    SJ_VALUE_LAST_POSITION =
        15, /* highest position of an argument; arguments count from 1 in source order */
    SJ_VALUE_LAST_REGISTER = 8,  /* last argument that a rule can name by its register */
    SJ_VALUES_PER_FUNCTION = 16, /* maximum values that rules select of one function */
    SJ_VALUE_TEXT_BYTES = 64,    /* default limit of a recorded text */
    SJ_VALUE_TEXT_MOST = 4096,   /* highest limit that a rule can set */
    SJ_VALUE_RULES = 256,        /* maximum rules of a policy */
    SJ_VALUE_RULE_BYTES = 64     /* capacity for a rule's name, with its NUL */
};

/* Places: bytes of a patch plan that tell the probe where a value is.
 *
 * A place is a descriptor. Its position is the number of a register in the value's register class,
 * from 1, or 0 for the result. Positions from SJ_PLACE_STACK on are words on the stack. Bytes of
 * kind 0 are commands, or prefixes of the next bytes. Four kinds exist only in places:
 * SJ_PLACE_VECTOR, SJ_PLACE_LENGTH_TEXT, SJ_PLACE_TEXT_LENGTH and SJ_PLACE_TEXT_AT. The probe
 * records SJ_PLACE_VECTOR as SJ_VALUE_OBJECT, which has the same number, and the other three as
 * SJ_VALUE_STRING. */
enum {
    SJ_PLACE_STACK = 9, /* position of the first word on the stack; the last position is 15 */
    SJ_PLACE_STACK_WORDS = 7,
    SJ_PLACES_PER_FUNCTION = 20,
    SJ_PLACE_CPU_ENTRY = 1, /* command: record the thread's CPU time at entry */
    /* command of probes only: record the thread's CPU time at the exit. A plan has
     * SJ_PLACE_CPU_ENTRY for entry and exit. */
    SJ_PLACE_CPU_EXIT = 2,
    /* command for methods of Mono and Java: record all arguments and the result by their own types,
     * except the positions that the method's other places record */
    SJ_PLACE_OWN_VALUES = 2,
    /* command: record the thread's memory counters at entry; in a plan, also at the exit */
    SJ_PLACE_MEMORY_ENTRY = 3,
    SJ_PLACE_MEMORY_EXIT = 4, /* command of probes only: record these counters at the exit */
    SJ_PLACE_ERRNO = 5,       /* command: record errno at the exit */
    /* The prefixes 6 to 11, but not this value itself, limit the texts that follow. The limit is
     * SJ_VALUE_TEXT_BYTES << (place - SJ_PLACE_LIMIT) bytes. */
    SJ_PLACE_LIMIT = 5,
    SJ_PLACE_LIMIT_MOST = 11,
    /* prefix: the next place holds the length of the text in the place after it */
    SJ_PLACE_LENGTH = 12,
    /* prefix: the next byte is a number of words. The place after it holds an address. Record that
     * many words at the address, as a text. */
    SJ_PLACE_WORDS = 13,
    /* prefix: the next place holds the address of a buffer that the function fills. Record the
     * buffer at the exit, as the text of the place after it. Its length is the function's result,
     * a 64-bit number. */
    SJ_PLACE_FILLED = 14,
    SJ_PLACE_FILLED_INT = 15,  /* SJ_PLACE_FILLED with a 32-bit result */
    SJ_PLACE_MOST_WORDS = 191, /* highest number of words after SJ_PLACE_WORDS */
    /* after SJ_PLACE_WORDS: SJ_PLACE_SRET_WORDS + n records n words of a result in memory (sret).
     * The probe saves the caller's address for it at the entry. If n is 0, the kind of the next
     * place says how to find the text there. */
    SJ_PLACE_SRET_WORDS = 192,
    SJ_PLACE_SRET_MOST = 239,
    /* after SJ_PLACE_WORDS: SJ_PLACE_OWN_WORDS + n records n words of the place itself. They are on
     * the stack, in the vector register of an argument, or in the registers of a result. The
     * words of a result are in the order of sj_result_word. */
    SJ_PLACE_OWN_WORDS = 240,
    /* after SJ_PLACE_FILLED, in probes only: save the address for a result in memory at entry */
    SJ_PLACE_RESULT_ADDRESS = 1,
    SJ_PLACE_VECTOR = 12,      /* kind: a whole vector register, as two words */
    SJ_PLACE_LENGTH_TEXT = 13, /* kind: two registers with a text's length and address */
    SJ_PLACE_TEXT_LENGTH = 14, /* kind: two registers with a text's address and length */
    SJ_PLACE_TEXT_AT = 15      /* kind: the address of a pair: a text's address and length */
};

/* The words in which a function can return a result. The upper half of a vector register is among
 * them only as part of SJ_RESULT_EXTENDED. */
typedef enum sj_result_word {
    SJ_RESULT_WHOLE = 0,
    SJ_RESULT_SECOND = 1,
    SJ_RESULT_REAL = 2, /* lower halves of the first four vector registers */
    /* two words of a long double: the top of the x87 stack (x86_64), or v0 (aarch64) */
    SJ_RESULT_EXTENDED = 6,
    SJ_RESULT_WORDS = 8
} sj_result_word;

/* Tells whether a recorded text is complete. */
typedef enum sj_value_note {
    SJ_VALUE_WHOLE = 0,
    SJ_VALUE_CUT = 1,        /* the text was longer */
    SJ_VALUE_UNREADABLE = 2, /* the memory could not be read */
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

/* True if the place limits the length of the texts that follow. */
static inline bool sj_place_is_limit(uint8_t place)
{
    return place > SJ_PLACE_LIMIT && place <= SJ_PLACE_LIMIT_MOST;
}

/* True if the next place is the address of a buffer that the function fills. */
static inline bool sj_place_is_filled(uint8_t place)
{
    return place == SJ_PLACE_FILLED || place == SJ_PLACE_FILLED_INT;
}

/* True if the next byte is not recorded, but describes the length or location of a text. */
static inline bool sj_place_is_size(uint8_t place)
{
    return place == SJ_PLACE_LENGTH || place == SJ_PLACE_WORDS || sj_place_is_filled(place);
}

/* True if the two bytes precede a result in memory at an address from the caller (sret). */
static inline bool sj_place_is_sret(uint8_t size, uint8_t words)
{
    return size == SJ_PLACE_WORDS && words >= SJ_PLACE_SRET_WORDS && words <= SJ_PLACE_SRET_MOST;
}

/* Returns the prefix of the smallest limit that allows `bytes` bytes, or else the highest prefix.
 * Returns 0 if the default limit suffices. */
static inline uint8_t sj_place_limit(uint32_t bytes)
{
    uint8_t place = SJ_PLACE_LIMIT;
    while (place < SJ_PLACE_LIMIT_MOST &&
           (uint32_t)SJ_VALUE_TEXT_BYTES << (place - SJ_PLACE_LIMIT) < bytes) {
        place++;
    }
    return place != SJ_PLACE_LIMIT ? place : 0;
}

/* Packs a text's length and sj_value_note into one number for the text's first record. */
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

/* Returns the position that a record uses for a reading of `counter`. */
static inline uint32_t sj_cost_reading(sj_cost_counter counter, bool at_entry)
{
    return 2 * (uint32_t)counter + (at_entry ? 1 : 0);
}

/* True if a record with this descriptor belongs to the exit that follows it. */
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

/* Converts a register's content to a 64-bit value of this kind. Drops the upper bits, which the
 * calling convention leaves undefined. Extends signed kinds by their sign. A bool becomes 0 or
 * 1. */
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
