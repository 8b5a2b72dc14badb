/* Conditions of a rule about values on the whole call: other values, errno, how long it took, in
 * which thread, from where and how often. Immutable after they were read; any thread. */
#ifndef SJ_AGENT_POLICY_VALUE_CONDITIONS_H
#define SJ_AGENT_POLICY_VALUE_CONDITIONS_H

#include "agent/policy/pattern.h"
#include "agent/policy/rule_set.h"
#include "proto/block/block.h"

typedef enum sj_value_comparison {
    SJ_VALUE_ALWAYS = 0, /* no condition */
    SJ_VALUE_EQUAL = 1,  /* of a text: it matches the pattern */
    SJ_VALUE_UNEQUAL = 2,
    SJ_VALUE_LESS = 3,
    SJ_VALUE_AT_MOST = 4,
    SJ_VALUE_GREATER = 5,
    SJ_VALUE_AT_LEAST = 6
} sj_value_comparison;

enum { SJ_VALUE_COMPARISONS = 7, SJ_VALUE_CONDITIONS = 8 };

typedef enum sj_condition_subject {
    SJ_CONDITION_VALUE = 0,
    SJ_CONDITION_DURATION = 1, /* ns */
    SJ_CONDITION_THREAD = 2,   /* its name */
    SJ_CONDITION_CALLER = 3,   /* the recorded function that called */
    SJ_CONDITION_CALL = 4      /* the number of the call, of those that meet the others, from 1 */
} sj_condition_subject;

typedef struct sj_value_condition {
    sj_condition_subject subject;
    sj_value_comparison comparison;
    uint8_t descriptor; /* of a value, as it is recorded; errno is one */
    uint64_t bits;      /* what is compared with, as its kind says; float as a double */
    double real;
    sj_pattern text; /* of texts, threads and callers */
} sj_value_condition;

/* What is known of a call at its exit, or, of what is decided then, at its entry. */
typedef struct sj_call_facts {
    const sj_block_value *values; /* as they were recorded, later ones win */
    size_t value_count;
    uint64_t duration_ns;
    bool has_ended; /* the duration is known */
    const char *thread;
    const sj_rule_set *called_from; /* rules whose condition on the caller names the caller */
} sj_call_facts;

/* sj_value_compare: a value, or its text, compares so. */
bool sj_value_compare(const sj_value_condition *condition, const sj_block_value *value);

/* sj_value_condition_is_late: what it is about is known at the exit only. */
bool sj_value_condition_is_late(const sj_value_condition *condition);

/* sj_value_conditions_hold says whether all of rule number `rule` hold; SJ_CONDITION_CALL is not
 * looked at. */
bool sj_value_conditions_hold(const sj_value_condition *conditions, size_t count, uint32_t rule,
                              const sj_call_facts *facts);

bool sj_value_conditions_same(const sj_value_condition *left, size_t left_count,
                              const sj_value_condition *right, size_t right_count);

#endif
