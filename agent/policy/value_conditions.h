/* Conditions of a rule about values on the whole call: other values, errno, duration, thread,
 * caller, and number of the call. Immutable once parsed; thread-safe. */
#ifndef SJ_AGENT_POLICY_VALUE_CONDITIONS_H
#define SJ_AGENT_POLICY_VALUE_CONDITIONS_H

#include "agent/policy/pattern.h"
#include "agent/policy/rule_set.h"
#include "proto/block/block.h"

typedef enum sj_value_comparison {
    SJ_VALUE_ALWAYS = 0, /* no condition */
    SJ_VALUE_EQUAL = 1,  /* text: it matches the pattern */
    SJ_VALUE_UNEQUAL = 2,
    SJ_VALUE_LESS = 3,
    SJ_VALUE_AT_MOST = 4,
    SJ_VALUE_GREATER = 5,
    SJ_VALUE_AT_LEAST = 6
} sj_value_comparison;

enum { SJ_VALUE_COMPARISONS = 7, SJ_VALUE_CONDITIONS = 8 };

typedef enum sj_condition_subject {
    SJ_CONDITION_VALUE = 0,
    SJ_CONDITION_DURATION = 1, /* nanoseconds */
    SJ_CONDITION_THREAD = 2,   /* name of the thread */
    SJ_CONDITION_CALLER = 3,   /* the recorded caller */
    /* number of the call among those that meet the other conditions, from 1 */
    SJ_CONDITION_CALL = 4
} sj_condition_subject;

typedef struct sj_value_condition {
    sj_condition_subject subject;
    sj_value_comparison comparison;
    uint8_t descriptor; /* descriptor of a value as recorded; errno is one */
    uint64_t bits;      /* the operand, in the format of its kind; a float as a double */
    double real;
    sj_pattern text; /* operand for texts, threads and callers */
} sj_value_condition;

/* Data of a call at its exit, or at its entry for rules that depend on the entry only. */
typedef struct sj_call_facts {
    const sj_block_value *values; /* as recorded; a later value replaces an earlier one */
    size_t value_count;
    uint64_t duration_ns;
    bool has_ended; /* the duration is known */
    const char *thread;
    const sj_rule_set *called_from; /* rules whose condition on the caller matches the caller */
} sj_call_facts;

/* True if a value, or its text, meets a condition. */
bool sj_value_compare(const sj_value_condition *condition, const sj_block_value *value);

/* True if only the exit can decide the condition. */
bool sj_value_condition_is_late(const sj_value_condition *condition);

/* True if all conditions of rule `rule` hold. Conditions of SJ_CONDITION_CALL count as true,
 * because the caller decides them. */
bool sj_value_conditions_hold(const sj_value_condition *conditions, size_t count, uint32_t rule,
                              const sj_call_facts *facts);

bool sj_value_conditions_same(const sj_value_condition *left, size_t left_count,
                              const sj_value_condition *right, size_t right_count);

#endif
