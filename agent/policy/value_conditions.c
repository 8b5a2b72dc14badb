#include "agent/policy/value_conditions.h"

#include <string.h>

static bool holds(sj_value_comparison comparison, int order)
{
    switch (comparison) {
    case SJ_VALUE_EQUAL:
        return order == 0;
    case SJ_VALUE_UNEQUAL:
        return order != 0;
    case SJ_VALUE_LESS:
        return order < 0;
    case SJ_VALUE_AT_MOST:
        return order <= 0;
    case SJ_VALUE_GREATER:
        return order > 0;
    case SJ_VALUE_AT_LEAST:
        return order >= 0;
    default:
        return true;
    }
}

static bool matches(const sj_value_condition *condition, const char *text)
{
    return sj_pattern_matches(&condition->text, text) == (condition->comparison == SJ_VALUE_EQUAL);
}

static bool text_holds(const sj_value_condition *condition, const sj_block_value *value)
{
    char text[SJ_VALUE_TEXT_MOST + 1];
    if (value->note != SJ_VALUE_WHOLE && value->note != SJ_VALUE_CUT) {
        return condition->comparison == SJ_VALUE_UNEQUAL;
    }
    if (value->text_bytes != 0) {
        memcpy(text, value->text, value->text_bytes);
    }
    text[value->text_bytes] = '\0';
    return matches(condition, text);
}

static bool real_holds(const sj_value_condition *condition, const sj_block_value *value)
{
    double real;
    float single;
    memcpy(&real, &value->bits, sizeof(real));
    memcpy(&single, &value->bits, sizeof(single));
    real = sj_value_kind_of(value->descriptor) == SJ_VALUE_FLOAT ? (double)single : real;
    /* NaN is unequal to every number, and neither less nor greater. */
    return real == real
               ? holds(condition->comparison, (real > condition->real) - (real < condition->real))
               : condition->comparison == SJ_VALUE_UNEQUAL;
}

bool sj_value_compare(const sj_value_condition *condition, const sj_block_value *value)
{
    const uint32_t kind = sj_value_kind_of(value->descriptor);
    if (condition->comparison == SJ_VALUE_ALWAYS) {
        return true;
    }
    if (sj_value_is_text(kind)) {
        return text_holds(condition, value);
    }
    if (sj_value_is_real(kind)) {
        return real_holds(condition, value);
    }
    if (sj_value_is_signed(kind)) {
        const int64_t left = (int64_t)value->bits;
        const int64_t right = (int64_t)condition->bits;
        return holds(condition->comparison, (left > right) - (left < right));
    }
    return holds(condition->comparison,
                 (value->bits > condition->bits) - (value->bits < condition->bits));
}

bool sj_value_condition_is_late(const sj_value_condition *condition)
{
    return condition->subject == SJ_CONDITION_DURATION ||
           (condition->subject == SJ_CONDITION_VALUE && sj_value_is_at_exit(condition->descriptor));
}

/* True if the call's value meets the condition. A value that the call did not record meets no
 * condition. */
static bool value_holds(const sj_value_condition *condition, const sj_call_facts *facts)
{
    for (size_t i = facts->value_count; i-- > 0;) {
        if (facts->values[i].descriptor == condition->descriptor && facts->values[i].rule == 0) {
            return sj_value_compare(condition, &facts->values[i]);
        }
    }
    return false;
}

static bool condition_holds(const sj_value_condition *condition, uint32_t rule,
                            const sj_call_facts *facts)
{
    switch (condition->subject) {
    case SJ_CONDITION_VALUE:
        return value_holds(condition, facts);
    case SJ_CONDITION_DURATION:
        return facts->has_ended &&
               holds(condition->comparison, (facts->duration_ns > condition->bits) -
                                                (facts->duration_ns < condition->bits));
    case SJ_CONDITION_THREAD:
        return matches(condition, facts->thread);
    case SJ_CONDITION_CALLER:
        return sj_rule_set_has(facts->called_from, rule) ==
               (condition->comparison == SJ_VALUE_EQUAL);
    case SJ_CONDITION_CALL:
        return true; /* decided by the caller */
    }
    return false;
}

bool sj_value_conditions_hold(const sj_value_condition *conditions, size_t count, uint32_t rule,
                              const sj_call_facts *facts)
{
    for (size_t i = 0; i < count; i++) {
        if (!condition_holds(&conditions[i], rule, facts)) {
            return false;
        }
    }
    return true;
}

static bool same_text(const char *left, const char *right)
{
    return (left == NULL) == (right == NULL) && (left == NULL || strcmp(left, right) == 0);
}

bool sj_value_conditions_same(const sj_value_condition *left, size_t left_count,
                              const sj_value_condition *right, size_t right_count)
{
    for (size_t i = 0; i < left_count && left_count == right_count; i++) {
        if (left[i].subject != right[i].subject || left[i].comparison != right[i].comparison ||
            left[i].descriptor != right[i].descriptor || left[i].bits != right[i].bits ||
            left[i].real < right[i].real || left[i].real > right[i].real ||
            !same_text(left[i].text.text, right[i].text.text)) {
            return false;
        }
    }
    return left_count == right_count;
}
