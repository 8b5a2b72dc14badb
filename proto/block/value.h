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
    SJ_VALUE_COST = 14    /* what the call has cost; its position is an sj_value_cost. In a record:
                             an sj_cost_record */
} sj_value_kind;

/* What a call cost, in this order. */
typedef enum sj_value_cost {
    SJ_COST_FUNCTION = 0, /* the session's id of the function */
    SJ_COST_CPU_NS = 1,   /* CPU time of its thread */
    SJ_COST_SELF_NS = 2,  /* without that of the calls below whose cost is measured, too */
    SJ_COST_NESTED = 3,   /* 1: within a call of the same function */
    SJ_COST_BYTES = 4,    /* that its thread allocated in the runtime's heap; where that is known */
    SJ_COSTS = 5
} sj_value_cost;

enum {
    SJ_VALUE_KINDS = 15,        /* one more than the highest */
    SJ_VALUE_RULE_KINDS = 13,   /* that rules may ask for */
    SJ_VALUE_RESULT = 0,        /* the position of what a call returns */
    SJ_VALUE_LAST_POSITION = 8, /* that rules may ask for; arguments are numbered from 1 */
    SJ_VALUES_PER_FUNCTION = 4, /* that rules may ask for */
    SJ_VALUE_TEXT_BYTES = 64,   /* of a text are kept */
    SJ_VALUE_RULES = 32,        /* of a policy */
    SJ_VALUE_RULE_BYTES = 64    /* of a rule's name, with its end */
};

/* What the thread has had so far, when a call is entered or left. Bytes come before the time. */
typedef enum sj_cost_record {
    SJ_COST_CPU_AT_EXIT = 0,
    SJ_COST_CPU_AT_ENTRY = 1,
    SJ_COST_BYTES_AT_EXIT = 2,
    SJ_COST_BYTES_AT_ENTRY = 3
} sj_cost_record;

/* Places: descriptors by which a plan tells the probe where a value is. Positions count the
 * registers of a class; those behind the last register are words on the stack. Beside the kinds
 * above there are some that the probe records as SJ_VALUE_STRING. */
enum {
    SJ_PLACE_STACK = 9, /* the position of the first word on the stack, up to 15 */
    SJ_PLACE_STACK_WORDS = 7,
    SJ_PLACES_PER_FUNCTION = 16,
    SJ_PLACE_CPU_ENTRY = 1,    /* no place of a value: the thread's CPU time is recorded */
    SJ_PLACE_CPU_EXIT = 2,     /* likewise; of probes only: a plan has the former for both */
    SJ_PLACE_LENGTH_TEXT = 13, /* kind: two registers with a text's length and its address */
    SJ_PLACE_TEXT_LENGTH = 14, /* kind: two registers with its address and its length */
    SJ_PLACE_TEXT_AT = 15      /* kind: the address of its address and its length */
};

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

/* sj_value_is_of_exit returns whether a record's value belongs to the exit of its call. */
static inline bool sj_value_is_of_exit(uint8_t descriptor)
{
    return sj_value_position(descriptor) == SJ_VALUE_RESULT ||
           descriptor == sj_value_descriptor(SJ_COST_BYTES_AT_EXIT, SJ_VALUE_COST);
}

static inline bool sj_value_is_sound(uint8_t descriptor)
{
    return sj_value_kind_of(descriptor) != 0 && sj_value_kind_of(descriptor) < SJ_VALUE_KINDS;
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
