/* Wanted values for methods of any types. They use every kind of value, and everything that rules
 * may do. */
#ifndef SJ_TESTS_AGENT_RUNTIMES_JVM_ANY_VALUES_H
#define SJ_TESTS_AGENT_RUNTIMES_JVM_ANY_VALUES_H

#include "agent/runtimes/jvm/class_rewrite.h"

#include <stdlib.h>

/* Returns the values of `count` methods, which the caller frees. Returns NULL if out of memory. */
static inline sj_java_values *any_values_new(uint32_t count)
{
    static const uint8_t kinds[] = {SJ_VALUE_OBJECT, SJ_VALUE_DOUBLE, SJ_VALUE_FLOAT,
                                    SJ_VALUE_STRING, SJ_VALUE_LONG};
    static const uint8_t parameters[SJ_VALUES_PER_FUNCTION] = {1, 2, 5, 0};
    sj_java_values *values = calloc((size_t)count + 1, sizeof(*values));
    for (uint32_t i = 0; values != NULL && i < count; i++) {
        for (uint32_t j = 0; j < SJ_VALUES_PER_FUNCTION; j++) {
            const uint8_t kind = kinds[(i + j) % sizeof(kinds)];
            values[i].items[j] = (sj_java_value){
                .descriptor = sj_value_descriptor(parameters[j], kind), .parameter = parameters[j]};
        }
        values[i].sets = UINT16_MAX;
        values[i].may_leave = true;
        values[i].costs = i % 3 == 0;
        values[i].lines = i % 4 != 0;
    }
    return values;
}

#endif
