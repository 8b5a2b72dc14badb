#include "agent/policy/value_rules.h"

#include <stdlib.h>
#include <string.h>

const char *const sj_value_kind_words[SJ_VALUE_RULE_KINDS] = {
    "",    "int",     "uint",  "long",   "ulong",  "char",  "bool",
    "hex", "pointer", "float", "double", "string", "object"};
const char *const sj_value_comparison_words[SJ_VALUE_COMPARISONS] = {"",   "==", "!=", "<",
                                                                     "<=", ">",  ">="};

sj_status sj_value_rules_new(sj_value_rules **rules)
{
    *rules = calloc(1, sizeof(**rules));
    if (*rules == NULL) {
        return SJ_ENOMEM;
    }
    atomic_store(&(*rules)->users, 1);
    for (size_t i = 0; i < SJ_VALUE_RULES; i++) {
        (*rules)->names[i] = (*rules)->items[i].name;
    }
    return SJ_OK;
}

sj_value_rules *sj_value_rules_share(sj_value_rules *rules)
{
    if (rules != NULL) {
        atomic_fetch_add(&rules->users, 1);
    }
    return rules;
}

void sj_value_rules_free(sj_value_rules *rules)
{
    if (rules == NULL || atomic_fetch_sub(&rules->users, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < SJ_VALUE_RULES; i++) {
        sj_pattern_free(&rules->items[i].function);
        sj_pattern_free(&rules->items[i].text);
    }
    free(rules);
}

static bool same_text(const char *left, const char *right)
{
    return (left == NULL) == (right == NULL) && (left == NULL || strcmp(left, right) == 0);
}

static bool same_change(const sj_value_rule *left, const sj_value_rule *right)
{
    const sj_value_change *a = &left->change;
    const sj_value_change *b = &right->change;
    return left->changes == right->changes && a->action == b->action && a->target == b->target &&
           a->error == b->error && a->bits == b->bits && a->delay_ns == b->delay_ns &&
           a->from == b->from && a->times == b->times && a->one_in == b->one_in;
}

static bool same_rule(const sj_value_rule *left, const sj_value_rule *right)
{
    return strcmp(left->name, right->name) == 0 && left->descriptor == right->descriptor &&
           left->stored == right->stored && left->comparison == right->comparison &&
           left->bits == right->bits && same_change(left, right) && !(left->real < right->real) &&
           !(left->real > right->real) && same_text(left->function.text, right->function.text) &&
           same_text(left->text.text, right->text.text);
}

bool sj_value_rules_same(const sj_value_rules *left, const sj_value_rules *right)
{
    const size_t count = left != NULL ? left->count : 0;
    if (count != (right != NULL ? right->count : 0)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!same_rule(&left->items[i], &right->items[i])) {
            return false;
        }
    }
    return true;
}

bool sj_value_rules_change(const sj_value_rules *rules)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        if (rules->items[i].changes) {
            return true;
        }
    }
    return false;
}

uint32_t sj_value_rules_match(const sj_value_rules *rules, const char *symbol)
{
    uint32_t matched = 0;
    const bool is_import = strchr(symbol, '!') != NULL; /* library!function: not patched itself */
    for (size_t i = 0; rules != NULL && !is_import && i < rules->count; i++) {
        matched |=
            sj_pattern_matches_symbol(&rules->items[i].function, symbol) ? UINT32_C(1) << i : 0;
    }
    return matched;
}

uint32_t sj_value_rules_of_managed(const sj_value_rules *rules, uint32_t matched)
{
    for (size_t i = 0; i < rules->count; i++) {
        matched &= rules->items[i].is_source ? ~(UINT32_C(1) << i) : UINT32_MAX;
    }
    return matched;
}

bool sj_value_rules_decide_calls(const sj_value_rules *rules, uint32_t matched)
{
    for (size_t i = 0; i < rules->count; i++) {
        const sj_value_change *change = &rules->items[i].change;
        const bool is_matched = (matched >> i & 1) != 0 && rules->items[i].changes;
        if (is_matched && (change->action == SJ_CHANGE_RETURN ||
                           (change->action == SJ_CHANGE_SET &&
                            sj_value_position(change->target) == SJ_VALUE_RESULT))) {
            return true;
        }
    }
    return false;
}

void sj_value_rules_list(const sj_value_rules *rules, uint32_t matched,
                         uint8_t descriptors[SJ_VALUES_PER_FUNCTION])
{
    size_t used = 0;
    memset(descriptors, 0, SJ_VALUES_PER_FUNCTION);
    for (size_t i = 0; i < SJ_VALUE_RULES && used < SJ_VALUES_PER_FUNCTION; i++) {
        const bool is_new =
            (matched >> i & 1) != 0 &&
            memchr(descriptors, rules->items[i].descriptor, SJ_VALUES_PER_FUNCTION) == NULL;
        if (is_new) {
            descriptors[used++] = rules->items[i].descriptor;
        }
    }
}

static int compare_real(double left, double right)
{
    return (left > right) - (left < right);
}

static bool holds_condition(sj_value_comparison comparison, int order)
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

static bool text_holds(const sj_value_rule *rule, const sj_block_value *value)
{
    char text[SJ_VALUE_TEXT_BYTES + 1];
    const bool is_text = value->note == SJ_VALUE_WHOLE || value->note == SJ_VALUE_CUT;
    memcpy(text, value->text, value->text_bytes);
    text[value->text_bytes] = '\0';
    const bool matches = is_text && sj_pattern_matches(&rule->text, text);
    return matches == (rule->comparison == SJ_VALUE_EQUAL);
}

bool sj_value_rule_holds(const sj_value_rule *rule, const sj_block_value *value)
{
    const uint32_t kind = sj_value_kind_of(value->descriptor);
    if (rule->descriptor != value->descriptor) {
        return false;
    }
    if (rule->comparison == SJ_VALUE_ALWAYS) {
        return true;
    }
    if (sj_value_is_text(kind)) {
        return text_holds(rule, value);
    }
    if (sj_value_is_real(kind)) {
        double real;
        float single;
        memcpy(&real, &value->bits, sizeof(real));
        memcpy(&single, &value->bits, sizeof(single));
        real = kind == SJ_VALUE_FLOAT ? (double)single : real;
        /* What is not a number is equal to none, and neither less nor greater. */
        return real == real ? holds_condition(rule->comparison, compare_real(real, rule->real))
                            : rule->comparison == SJ_VALUE_UNEQUAL;
    }
    if (sj_value_is_signed(kind)) {
        const int64_t left = (int64_t)value->bits;
        const int64_t right = (int64_t)rule->bits;
        return holds_condition(rule->comparison, (left > right) - (left < right));
    }
    return holds_condition(rule->comparison,
                           (value->bits > rule->bits) - (value->bits < rule->bits));
}
