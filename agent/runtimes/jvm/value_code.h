/* The code that records values of one method and does what rules make of its calls: the pieces in
 * front of the probes of its entry, of its exits and of its handler. They call the native methods
 * of agent/abi/java_values.h.
 *
 *       each argument: load; push what, id; invokestatic number  <- entry
 *       invokestatic decide; ifeq go on; push result; xreturn       rules that leave calls out
 *   go on:
 *       load; dup; invokestatic set; xor; store                     arguments that rules set
 *
 *       dup; push what, id; invokestatic number                  <- exit
 *       dup; invokestatic set; xor                                  if a rule sets the result
 *
 *       dup; push what, id; invokestatic thrown                  <- handler
 *
 *       push at entry, id; invokestatic cost                     <- last of the entry; without
 *                                                                   "at entry" first of the others
 */
#ifndef SJ_AGENT_RUNTIMES_JVM_VALUE_CODE_H
#define SJ_AGENT_RUNTIMES_JVM_VALUE_CODE_H

#include "agent/abi/java_values.h"
#include "agent/runtimes/jvm/big_endian.h"
#include "agent/runtimes/jvm/class_file.h"
#include "proto/block/value.h"

/* One value of a method. */
typedef struct sj_java_value {
    uint8_t descriptor; /* under which it is recorded; 0: none */
    uint8_t parameter;  /* its number in source order; 0: the result */
    bool has_condition; /* of a rule that changes calls: the value has to be there */
} sj_java_value;

/* What is wanted of a method's values. Zeroed: nothing. */
typedef struct sj_java_values {
    sj_java_value items[SJ_VALUES_PER_FUNCTION];
    uint16_t sets;  /* bits: parameters that rules set; bit 0 the result */
    bool may_leave; /* rules leave calls out, or throw instead */
    bool costs;     /* CPU time and allocated bytes */
    bool lines;     /* which of its lines run */
} sj_java_values;

static inline bool sj_java_values_wanted(const sj_java_values *values)
{
    return values->items[0].descriptor != 0 || values->costs || values->lines;
}

/* Methods of java.lang.Float and java.lang.Double. */
typedef enum sj_java_conversion {
    SJ_JAVA_FLOAT_TO_BITS = 0,
    SJ_JAVA_BITS_TO_FLOAT = 1,
    SJ_JAVA_DOUBLE_TO_BITS = 2,
    SJ_JAVA_BITS_TO_DOUBLE = 3,
    SJ_JAVA_CONVERSIONS = 4
} sj_java_conversion;

/* The constants that the code uses. */
typedef struct sj_value_constants {
    uint16_t natives[SJ_JAVA_NATIVES];
    uint16_t conversions[SJ_JAVA_CONVERSIONS];
    uint16_t id; /* Integer: the id of the method; 0: it is less than 2^15 */
} sj_value_constants;

enum { SJ_VALUE_CODE_STACK = 5 }; /* words that the code needs on top of the method's own */

/* Zeroed is empty. */
typedef struct sj_value_code {
    sj_be_output entry;
    sj_be_output exit;
    sj_be_output handler;
    uint16_t label; /* place in `entry` that a jump leads to, with an empty stack; 0: none */
} sj_value_code;

/* sj_value_code_make makes the pieces; where a value is none of the kind that its descriptor says,
 * there is no code for it. Release with sj_value_code_deinit, also after a failure. SJ_ECORRUPT the
 * method's descriptor follows no format; SJ_ENOMEM. Any thread. */
SJ_MUST_CHECK sj_status sj_value_code_make(const sj_class_method *method, uint32_t function,
                                           const sj_java_values *values,
                                           const sj_value_constants *constants,
                                           sj_value_code *code);
void sj_value_code_deinit(sj_value_code *code);

#endif
