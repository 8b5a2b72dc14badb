/* Code that records values of one method and applies rules to its calls. It precedes the probes of
 * its entry, its exits and its handler, and calls the native methods of agent/abi/java_values.h.
 *
 *       each argument: load; push what, id; invokestatic number  <- entry
 *       invokestatic decide; ifeq next; push result; xreturn        rules that leave calls out
 *   next:
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
    uint8_t descriptor; /* Descriptor under which it is recorded. 0: none. */
    uint8_t parameter;  /* Number of the parameter in source order. 0: the result. */
    bool has_condition; /* True if a rule that changes calls tests it: the value must exist. */
} sj_java_value;

/* The wanted values of a method. Zeroed: none. */
typedef struct sj_java_values {
    sj_java_value items[SJ_VALUES_PER_FUNCTION];
    uint16_t sets;  /* Bits of the parameters that rules set. Bit 0 is the result. */
    bool may_leave; /* True if rules leave calls out, or throw instead. */
    bool costs;     /* Record CPU time and allocated bytes. */
    bool lines;     /* Record which of its lines run. */
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
    uint16_t id; /* An Integer with the method's id. 0: the id is less than 2^15. */
} sj_value_constants;

/* Words that the code needs in addition to the method's own stack. */
enum { SJ_VALUE_CODE_STACK = 5 };

/* Zeroed code is empty. */
typedef struct sj_value_code {
    sj_be_output entry;
    sj_be_output exit;
    sj_be_output handler;
    /* Position in `entry` that a jump leads to, with an empty stack. 0: none. */
    uint16_t label;
} sj_value_code;

/* Creates the code. A value whose type does not fit the kind of its descriptor gets no code. The
 * caller releases it with sj_value_code_deinit, also after an error. Returns SJ_ECORRUPT if the
 * method's descriptor is malformed, or SJ_ENOMEM. Thread-safe. */
SJ_MUST_CHECK sj_status sj_value_code_make(const sj_class_method *method, uint32_t function,
                                           const sj_java_values *values,
                                           const sj_value_constants *constants,
                                           sj_value_code *code);
void sj_value_code_deinit(sj_value_code *code);

#endif
