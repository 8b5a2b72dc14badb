/* Creates code that records values of one method and applies rules to its calls. The code is
 * inserted before the probes of the method's entry, exits and handler. It calls the native methods
 * of agent/abi/java_values.h.
 *
 *       each argument: load; push what, id; invokestatic number  <- entry
 *       invokestatic decide; ifeq next; push result; xreturn        rules that skip calls
 *   next:
 *       load; dup; invokestatic set; xor; store                     arguments that rules set
 *
 *       dup; push what, id; invokestatic number                  <- exit
 *       dup; invokestatic set; xor                                  if a rule sets the result
 *
 *       dup; push what, id; invokestatic thrown                  <- handler
 *
 *       push at entry, id; invokestatic cost                     <- last of the entry
 *       push 0, id; invokestatic cost                            <- first of the exit and handler
 */
#ifndef SJ_AGENT_RUNTIMES_JVM_VALUE_CODE_H
#define SJ_AGENT_RUNTIMES_JVM_VALUE_CODE_H

#include "agent/abi/java_values.h"
#include "agent/runtimes/jvm/big_endian.h"
#include "agent/runtimes/jvm/class_file.h"
#include "proto/block/value.h"

/* One value of a method. */
typedef struct sj_java_value {
    uint8_t descriptor; /* Descriptor of its records; 0 if the item is not used. */
    uint8_t parameter;  /* Number of the parameter in source order, from 1; 0 for the result. */
    bool has_condition; /* True if a rule that changes calls tests the value. */
} sj_java_value;

/* The values of a method to record. A zeroed structure has none. */
typedef struct sj_java_values {
    sj_java_value items[SJ_VALUES_PER_FUNCTION];
    uint16_t own;   /* Bit i is 1 if parameter i is recorded by its own type; bit 0: the result. */
    uint16_t sets;  /* Bit i is 1 if rules set parameter i. Bit 0 is 1 if rules set the result. */
    bool may_leave; /* True if rules skip calls, or throw instead. */
    bool costs;     /* True if CPU time and allocated bytes are recorded. */
    bool lines;     /* True if the lines that run are recorded. */
} sj_java_values;

/* True if there is anything to record. */
static inline bool sj_java_values_wanted(const sj_java_values *values)
{
    return values->items[0].descriptor != 0 || values->own != 0 || values->costs || values->lines;
}

/* Conversions by methods of java.lang.Float and java.lang.Double. */
typedef enum sj_java_conversion {
    SJ_JAVA_FLOAT_TO_BITS = 0,
    SJ_JAVA_BITS_TO_FLOAT = 1,
    SJ_JAVA_DOUBLE_TO_BITS = 2,
    SJ_JAVA_BITS_TO_DOUBLE = 3,
    SJ_JAVA_CONVERSIONS = 4
} sj_java_conversion;

/* Indices of the constants that the code uses. */
typedef struct sj_value_constants {
    uint16_t natives[SJ_JAVA_NATIVES];
    uint16_t conversions[SJ_JAVA_CONVERSIONS];
    uint16_t id; /* An Integer with the function id. Not used if the id is less than 2^15. */
} sj_value_constants;

/* Number of stack words that the code needs in addition to the method's own stack. */
enum { SJ_VALUE_CODE_STACK = 5 };

/* Zeroed code is empty. */
typedef struct sj_value_code {
    sj_be_output entry;
    sj_be_output exit;
    sj_be_output handler;
    /* Offset in `entry` that is the target of a jump, with an empty stack; 0 if it has none. */
    uint16_t label;
} sj_value_code;

/* Creates the code. Leaves out values whose type does not fit the kind of their descriptor. The
 * caller calls sj_value_code_deinit, even after an error. Returns SJ_ECORRUPT if the method's
 * descriptor is malformed, or SJ_ENOMEM. Thread-safe. */
SJ_MUST_CHECK sj_status sj_value_code_make(const sj_class_method *method, uint32_t function,
                                           const sj_java_values *values,
                                           const sj_value_constants *constants,
                                           sj_value_code *code);
void sj_value_code_deinit(sj_value_code *code);

#endif
