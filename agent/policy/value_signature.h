/* Signatures of functions in source order, as "(path:str, flags:hex, mode:int) -> int", and where
 * the calling convention puts each value. Pure functions; any thread; no allocation.
 *
 *     signature = "(" [parameter {"," parameter}] ["," "..."] ")" ["->" kind]
 *     parameter = [name ":"] kind [size]     the name "_": not recorded
 *     kind      = a word of sj_value_kind_words, "str", "bytes", "struct" or (result only) "void"
 *     size      = "[" item {"," item} "]"    of "str" and "bytes"
 *     item      = number | name
 *
 * A number in brackets says how many bytes are recorded at most, a name which parameter, a whole
 * number, has the length; "bytes" needs one. The name "result", where no parameter has it, says
 * that the function fills the buffer, and returns how many bytes it has then: one of each function.
 * "struct" is a structure that is passed or returned in memory: over 16 bytes. It is not recorded,
 * but counts: System V passes the address of such a result in the first general register and copies
 * an argument to the stack, behind which nothing on the stack is found; AAPCS64 has a register of
 * its own for the result (x8) and passes the address of an argument's copy. Smaller structures,
 * __int128 and long double cannot be written. */
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
    uint8_t place;  /* descriptor whose position counts the registers of its class, and behind
                       them words on the stack (SJ_PLACE_STACK) */
    uint8_t source; /* descriptor whose position counts the parameters in source order */
    uint8_t limit;  /* sj_place_limit of a text; 0: as otherwise */
    uint8_t length; /* place of the argument that is its length; 0: it ends by itself */
    uint8_t filled; /* SJ_PLACE_FILLED or _INT: `place` is the result's, it is recorded at the exit
                       with the result as its length; 0: it is not */
    uint8_t filled_place; /* then that of the argument that leads to it */
} sj_signature_value;

typedef struct sj_signature {
    size_t count;
    sj_signature_value values[SJ_VALUE_LAST_POSITION + 1]; /* arguments in order, then the result */
} sj_signature;

/* sj_signature_is_method returns whether a pattern is about methods of Objective-C. */
static inline bool sj_signature_is_method(const char *function)
{
    return (function[0] == '-' || function[0] == '+') && function[1] == '[';
}

/* sj_signature_parse reads `text`. With `is_method`, a method of Objective-C, whose hidden
 * parameters the planner counts, a result in memory takes no register. SJ_EINVAL with a sentence:
 * not of that form, a value is asked for that is too far on the stack (of a method: on it) or
 * behind position SJ_VALUE_LAST_POSITION, or none is. */
SJ_MUST_CHECK sj_status sj_signature_parse(const char *text, sj_calling_convention convention,
                                           bool is_method, sj_signature *signature,
                                           sj_error *error);

#endif
