/* Signatures of functions in source order, such as "(path:str, flags:hex, mode:int) -> int". The
 * calling convention gives the place of each value. Pure functions; thread-safe; do not allocate.
 *
 *     signature = "(" [parameter {"," parameter}] ["," "..."] ")" ["->" kind]
 *     parameter = [name ":"] kind [size]     the name "_": not recorded
 *     kind      = a word of sj_value_kind_words, "str", "bytes", "struct" or (result only) "void"
 *     size      = "[" item {"," item} "]"    of "str" and "bytes"
 *     item      = number | name
 *
 * A number in brackets is the maximum number of recorded bytes. A name in brackets is the integer
 * parameter that holds the length; "bytes" needs one. If no parameter has the name "result",
 * "[result]" says that the function fills the buffer, and returns the number of bytes in it. Only
 * one value of a function can have "[result]".
 *
 * "struct" is a structure of more than 16 bytes, which is passed or returned in memory. It is not
 * recorded, but changes the places of other values. System V passes the address of such a result in
 * the first general register. It copies such an argument to the stack; the places of later values
 * on the stack are then unknown. AAPCS64 has a register of its own for the result's address (x8),
 * and passes the address of an argument's copy. Smaller structures, __int128 and long double cannot
 * be written. */
#ifndef SJ_AGENT_POLICY_VALUE_SIGNATURE_H
#define SJ_AGENT_POLICY_VALUE_SIGNATURE_H

#include "agent/abi/machine.h"
#include "proto/base/error.h"
#include "proto/block/value.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum sj_calling_convention {
    SJ_CONVENTION_SYSTEM_V = 0, /* x86-64 */
    SJ_CONVENTION_AAPCS64 = 1,
    SJ_CONVENTION_NATIVE = SJ_MACHINE_CONVENTION
} sj_calling_convention;

typedef struct sj_signature_value {
    /* Descriptor whose position counts the registers of its class, and after them words on the
     * stack (SJ_PLACE_STACK). */
    uint8_t place;
    uint8_t source; /* descriptor whose position counts parameters in source order */
    uint8_t limit;  /* sj_place_limit of a text; 0: the default */
    uint8_t length; /* place of the argument that holds its length; 0: NUL-terminated */
    /* SJ_PLACE_FILLED or SJ_PLACE_FILLED_INT: the value is a buffer that the function fills. It is
     * recorded at the exit, with the result as its length, and `place` is the result's place. 0:
     * the value is recorded at its own place. */
    uint8_t filled;
    uint8_t filled_place; /* place of the argument that points to the filled buffer */
} sj_signature_value;

typedef struct sj_signature {
    size_t count;
    sj_signature_value values[SJ_VALUE_LAST_POSITION + 1]; /* arguments in order, then the result */
} sj_signature;

/* True if a pattern is about methods of Objective-C. */
static inline bool sj_signature_is_method(const char *function)
{
    return (function[0] == '-' || function[0] == '+') && function[1] == '[';
}

/* Parses `text`. `is_method`: a method of Objective-C; the planner counts its hidden parameters,
 * and its result in memory uses no register. Returns SJ_EINVAL with a message if the text is not a
 * signature, or has no value to record. Also returns SJ_EINVAL if a value cannot be recorded. This
 * is so after position SJ_VALUE_LAST_POSITION, for values too far on the stack, and for all values
 * on the stack of a method. */
SJ_MUST_CHECK sj_status sj_signature_parse(const char *text, sj_calling_convention convention,
                                           bool is_method, sj_signature *signature,
                                           sj_error *error);

#endif
