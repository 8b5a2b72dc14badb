#include "agent/policy/value_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
    for (uint32_t i = 0; rules->typed != NULL && i <= atomic_load(&rules->highest_typed); i++) {
        sj_typed_function_free(atomic_load(&rules->typed[i]));
    }
    if (rules->typed != NULL) {
        munmap((void *)rules->typed, SJ_TYPED_FUNCTIONS * sizeof(*rules->typed));
    }
    for (size_t i = 0; i < SJ_VALUE_RULES; i++) {
        sj_pattern_free(&rules->items[i].function);
        sj_pattern_free(&rules->items[i].own.text);
        for (size_t j = 0; j < SJ_VALUE_CONDITIONS; j++) {
            sj_pattern_free(&rules->items[i].conditions[j].text);
        }
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
           a->from == b->from && a->times == b->times && a->one_in == b->one_in &&
           a->lasts_ns == b->lasts_ns && a->data_bytes == b->data_bytes &&
           memcmp(a->data, b->data, a->data_bytes) == 0 &&
           strcmp(a->begin_mark, b->begin_mark) == 0 && strcmp(a->end_mark, b->end_mark) == 0 &&
           strcmp(a->thrown, b->thrown) == 0;
}

static bool same_rule(const sj_value_rule *left, const sj_value_rule *right)
{
    return strcmp(left->name, right->name) == 0 && left->descriptor == right->descriptor &&
           left->stored == right->stored && left->is_typed == right->is_typed &&
           left->is_cpu == right->is_cpu && left->is_memory == right->is_memory &&
           sj_value_conditions_same(&left->own, 1, &right->own, 1) &&
           sj_value_conditions_same(left->conditions, left->condition_count, right->conditions,
                                    right->condition_count) &&
           same_change(left, right) && same_text(left->function.text, right->function.text);
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

bool sj_value_rules_ask_types(const sj_value_rules *rules)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        if (rules->items[i].is_typed) {
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

uint32_t sj_value_rules_typed_of(const sj_value_rules *rules, uint32_t matched, const char *symbol)
{
    const bool is_method = (symbol[0] == '-' || symbol[0] == '+') && symbol[1] == '[';
    uint32_t typed = 0;
    for (size_t i = 0; rules != NULL && !is_method && i < rules->count; i++) {
        typed |= rules->items[i].is_typed ? matched & UINT32_C(1) << i : 0;
    }
    return typed;
}

bool sj_value_rules_measure_cpu(const sj_value_rules *rules, uint32_t matched)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        if (rules->items[i].is_cpu && (matched >> i & 1) != 0) {
            return true;
        }
    }
    return false;
}

bool sj_value_rules_measure_memory(const sj_value_rules *rules, uint32_t matched)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        if (rules->items[i].is_memory && (matched >> i & 1) != 0) {
            return true;
        }
    }
    return false;
}

sj_status sj_value_rules_need_types(sj_value_rules *rules)
{
    if (rules->typed == NULL) {
        void *memory =
            mmap(NULL, SJ_TYPED_FUNCTIONS * sizeof(*rules->typed), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        rules->typed = memory != MAP_FAILED ? memory : NULL;
    }
    return rules->typed != NULL ? SJ_OK : SJ_ENOMEM;
}

void sj_value_rules_set_typed(sj_value_rules *rules, uint32_t function, sj_typed_function *typed)
{
    if (rules->typed == NULL || function >= SJ_TYPED_FUNCTIONS ||
        atomic_load(&rules->typed[function]) != NULL) {
        sj_typed_function_free(typed);
        return;
    }
    if (function > atomic_load(&rules->highest_typed)) { /* by one thread */
        atomic_store(&rules->highest_typed, function);
    }
    atomic_store(&rules->typed[function], typed);
}

const sj_typed_function *sj_value_rules_typed(const sj_value_rules *rules, uint32_t function)
{
    return rules != NULL && rules->typed != NULL && function < SJ_TYPED_FUNCTIONS
               ? atomic_load(&rules->typed[function])
               : NULL;
}

void sj_value_rules_count_types(sj_value_rules *rules, uint32_t typed, bool is_found)
{
    for (size_t i = 0; i < rules->count; i++) {
        if ((typed >> i & 1) != 0) {
            atomic_fetch_add(is_found ? &rules->found[i] : &rules->missing[i], 1);
        }
    }
}

/* name_enumerator writes the name of an enumeration's number, or the number. */
static void name_enumerator(const sj_typed_value *typed, uint64_t bits, sj_block_value *value)
{
    const uint64_t mask =
        typed->bytes < sizeof(bits) ? (UINT64_C(1) << (8 * typed->bytes)) - 1 : UINT64_MAX;
    char number[24];
    const char *name = number;
    snprintf(number, sizeof(number), "%llu", (unsigned long long)(bits & mask));
    for (size_t i = 0; i < typed->enumerator_count; i++) {
        if (((uint64_t)typed->enumerators[i].value & mask) == (bits & mask)) {
            name = typed->enumerators[i].name;
            break;
        }
    }
    const size_t length = strlen(name);
    value->bits = 0;
    value->note = length > SJ_VALUE_TEXT_BYTES ? SJ_VALUE_CUT : SJ_VALUE_WHOLE;
    value->text_bytes = (uint8_t)(length < SJ_VALUE_TEXT_BYTES ? length : SJ_VALUE_TEXT_BYTES);
    memcpy(value->text, name, value->text_bytes);
}

void sj_typed_value_take(const sj_typed_value *typed, const sj_block_value *from,
                         sj_block_value *value)
{
    const uint32_t kind = sj_value_kind_of(typed->descriptor);
    *value = *from;
    value->descriptor = typed->descriptor;
    value->rule = 0;
    if (kind == SJ_VALUE_STRING) {
        return;
    }
    uint64_t bits = from->bits >> (8 * typed->from_byte);
    const bool is_short = (kind == SJ_VALUE_INT || kind == SJ_VALUE_UINT) && typed->bytes < 4;
    if (kind == SJ_VALUE_OBJECT) {
        name_enumerator(typed, bits, value);
        return;
    }
    if (is_short) {
        const uint32_t unused = 64 - 8 * (uint32_t)typed->bytes;
        bits = kind == SJ_VALUE_INT ? (uint64_t)((int64_t)(bits << unused) >> unused)
                                    : bits << unused >> unused;
    }
    value->bits = sj_value_narrow(kind, bits);
}

/* Adds the place that a value is recorded from, once. */
static size_t list_place(uint8_t descriptor, uint8_t *descriptors, size_t used, size_t capacity)
{
    const uint8_t place =
        sj_value_kind_of(descriptor) == SJ_VALUE_ERRNO ? (uint8_t)SJ_PLACE_ERRNO : descriptor;
    if (place == 0 || used == capacity || memchr(descriptors, place, used) != NULL) {
        return used;
    }
    descriptors[used] = place;
    return used + 1;
}

void sj_value_rules_list(const sj_value_rules *rules, uint32_t matched, uint8_t *descriptors,
                         size_t used, size_t capacity)
{
    memset(descriptors + used, 0, capacity - used);
    /* What a condition of a change is about comes first: it is judged with the rule's own value. */
    for (size_t i = 0; i < rules->count; i++) {
        const sj_value_rule *rule = &rules->items[i];
        if ((matched >> i & 1) == 0) {
            continue;
        }
        for (size_t j = 0; j < rule->condition_count; j++) {
            const sj_value_condition *condition = &rule->conditions[j];
            used = condition->subject == SJ_CONDITION_VALUE
                       ? list_place(condition->descriptor, descriptors, used, capacity)
                       : used;
        }
        used = list_place(rule->descriptor, descriptors, used, capacity);
        if (sj_value_rule_is_late(rule) && rule->condition_count != 0) { /* a record at the exit */
            used = list_place(sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_ERRNO), descriptors,
                              used, capacity);
        }
    }
}

bool sj_value_rule_holds(const sj_value_rule *rule, const sj_block_value *value)
{
    return rule->descriptor == value->descriptor && sj_value_compare(&rule->own, value);
}

bool sj_value_rule_is_late(const sj_value_rule *rule)
{
    bool is_late = sj_value_is_at_exit(rule->descriptor);
    for (size_t i = 0; i < rule->condition_count; i++) {
        is_late = is_late || sj_value_condition_is_late(&rule->conditions[i]);
    }
    return is_late;
}

static bool is_number_met(const sj_value_rule *rule, uint64_t number)
{
    const sj_block_value value = {.descriptor = sj_value_descriptor(0, SJ_VALUE_ULONG),
                                  .bits = number};
    for (size_t i = 0; i < rule->condition_count; i++) {
        if (rule->conditions[i].subject == SJ_CONDITION_CALL &&
            !sj_value_compare(&rule->conditions[i], &value)) {
            return false;
        }
    }
    return true;
}

bool sj_value_rules_meet(sj_value_rules *rules, uint32_t number, const sj_call_facts *facts)
{
    const sj_value_rule *rule = &rules->items[number];
    return sj_value_conditions_hold(rule->conditions, rule->condition_count, number, facts) &&
           is_number_met(rule, atomic_fetch_add(&rules->met[number], 1) + 1);
}

bool sj_value_rules_judge_calls(const sj_value_rules *rules)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        if (rules->items[i].condition_count != 0 && !rules->items[i].changes) {
            return true;
        }
    }
    return false;
}

uint32_t sj_value_rules_called_from(const sj_value_rules *rules, const char *symbol)
{
    uint32_t matched = 0;
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        for (size_t j = 0; j < rules->items[i].condition_count; j++) {
            const sj_value_condition *condition = &rules->items[i].conditions[j];
            if (condition->subject == SJ_CONDITION_CALLER &&
                sj_pattern_matches_symbol(&condition->text, symbol)) {
                matched |= UINT32_C(1) << i;
            }
        }
    }
    return matched;
}
