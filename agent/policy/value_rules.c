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
    _Atomic(sj_typed_function *) *types = atomic_load(&rules->typed);
    for (uint32_t i = 0; types != NULL && i <= atomic_load(&rules->highest_typed); i++) {
        sj_typed_function_free(atomic_load(&types[i]));
    }
    if (types != NULL) {
        munmap((void *)types, SJ_TYPED_FUNCTIONS * sizeof(*types));
    }
    for (size_t i = 0; i < SJ_VALUE_RULES; i++) {
        sj_pattern_free(&rules->items[i].function);
        sj_pattern_free(&rules->items[i].own.text);
        for (size_t j = 0; j < SJ_VALUE_CONDITIONS; j++) {
            sj_pattern_free(&rules->items[i].conditions[j].text);
        }
    }
    for (size_t i = 0; i < rules->redacted_count; i++) {
        sj_pattern_free(&rules->redacted[i]);
    }
    free(rules);
}

sj_status sj_value_rules_redact(sj_value_rules *rules, const sj_redaction *redaction)
{
    sj_error ignored; /* the patterns are valid */
    while (rules->redacted_count < redaction->value_count) {
        const char *text = redaction->values[rules->redacted_count].text;
        if (sj_pattern_make(text, &rules->redacted[rules->redacted_count], &ignored) != SJ_OK) {
            return SJ_ENOMEM;
        }
        rules->redacted_count++;
    }
    return SJ_OK;
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

bool sj_value_rule_same(const sj_value_rule *left, const sj_value_rule *right)
{
    return strcmp(left->name, right->name) == 0 && left->descriptor == right->descriptor &&
           left->stored == right->stored && left->is_typed == right->is_typed &&
           left->is_cpu == right->is_cpu && left->is_memory == right->is_memory &&
           left->limit == right->limit && left->length_place == right->length_place &&
           left->filled == right->filled && left->filled_place == right->filled_place &&
           sj_value_conditions_same(&left->own, 1, &right->own, 1) &&
           sj_value_conditions_same(left->conditions, left->condition_count, right->conditions,
                                    right->condition_count) &&
           same_change(left, right) && same_text(left->function.text, right->function.text);
}

bool sj_value_rules_have_records(const sj_value_rules *rules, const sj_value_rules *others)
{
    for (size_t i = 0; others != NULL && i < others->count; i++) {
        bool is_recorded = others->items[i].changes || atomic_load(&others->items[i].is_withdrawn);
        for (size_t j = 0; !is_recorded && rules != NULL && j < rules->count; j++) {
            is_recorded = sj_value_rule_same(&others->items[i], &rules->items[j]);
        }
        if (!is_recorded) {
            return false;
        }
    }
    return true;
}

bool sj_value_rules_same(const sj_value_rules *left, const sj_value_rules *right)
{
    const size_t count = left != NULL ? left->count : 0;
    if (count != (right != NULL ? right->count : 0)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!sj_value_rule_same(&left->items[i], &right->items[i])) {
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

sj_rule_set sj_value_rules_named(const sj_value_rules *rules, const char *symbol)
{
    sj_rule_set matched = {0};
    const char *import = strchr(symbol, '!'); /* library!function: calls into a library */
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        const sj_pattern *function = &rules->items[i].function;
        const bool is_of_import = strchr(function->text, '!') != NULL;
        const char *named = import != NULL && function->text[0] == '!' ? import : symbol;
        if (is_of_import == (import != NULL) && !atomic_load(&rules->items[i].is_withdrawn) &&
            sj_pattern_matches_symbol(function, named)) {
            sj_rule_set_add(&matched, i);
        }
    }
    return matched;
}

/* True if the program must read a text for the rule, or if debug data choose what is read. */
static bool reads_text(const sj_value_rule *rule)
{
    bool reads = rule->is_typed || sj_value_is_text(sj_value_kind_of(rule->descriptor)) ||
                 sj_value_is_text(sj_value_kind_of(rule->stored));
    for (size_t i = 0; i < rule->condition_count; i++) {
        const sj_value_condition *condition = &rule->conditions[i];
        reads = reads || (condition->subject == SJ_CONDITION_VALUE &&
                          sj_value_is_text(sj_value_kind_of(condition->descriptor)));
    }
    return reads;
}

sj_rule_set sj_value_rules_match(const sj_value_rules *rules, const char *symbol)
{
    sj_rule_set matched = sj_value_rules_named(rules, symbol);
    if (sj_rule_set_is_empty(&matched) ||
        !sj_redaction_names(rules->redacted, rules->redacted_count, symbol)) {
        return matched;
    }
    const sj_rule_set named = matched;
    SJ_EACH_RULE (i, &named) {
        if (reads_text(&rules->items[i])) {
            sj_rule_set_remove(&matched, i);
        }
    }
    return matched;
}

sj_rule_set sj_value_rules_of_managed(const sj_value_rules *rules, const sj_rule_set *matched)
{
    sj_rule_set managed = {0};
    SJ_EACH_RULE (i, matched) {
        const sj_value_rule *rule = &rules->items[i];
        if (!rule->is_source || rule->is_cpu || rule->is_typed) {
            sj_rule_set_add(&managed, i);
        }
    }
    return managed;
}

/* True if a rule stores its value without a condition. */
static bool records_always(const sj_value_rule *rule)
{
    return !rule->is_typed && !rule->is_cpu && !rule->is_memory && !rule->changes &&
           !sj_value_rule_has_condition(rule);
}

static bool is_by_signature(const sj_value_rule *rule)
{
    return rule->is_source && !rule->is_typed && !rule->is_cpu && !rule->is_memory;
}

uint16_t sj_value_rules_own_positions(const sj_value_rules *rules, const sj_rule_set *matched)
{
    uint32_t positions = UINT16_MAX;
    bool is_typed = false;
    SJ_EACH_RULE (i, matched) {
        const sj_value_rule *rule = &rules->items[i];
        is_typed = is_typed || rule->is_typed;
        if (is_by_signature(rule)) {
            return 0;
        }
        if (records_always(rule)) {
            positions &= ~(1U << sj_value_position(rule->descriptor));
        }
    }
    return is_typed ? (uint16_t)positions : 0;
}

sj_rule_set sj_value_rules_within(const sj_value_rules *rules, const sj_rule_set *matched,
                                  uint32_t parameters)
{
    sj_rule_set within = {0};
    SJ_EACH_RULE (i, matched) {
        const sj_value_rule *rule = &rules->items[i];
        if (rule->changes || sj_value_position(rule->descriptor) <= parameters) {
            sj_rule_set_add(&within, i);
        }
    }
    return within;
}

sj_rule_set sj_value_rules_fresh_of(const sj_value_rules *rules, const sj_rule_set *matched)
{
    sj_rule_set fresh = {0};
    SJ_EACH_RULE (i, matched) {
        if (rules->items[i].is_fresh) {
            sj_rule_set_add(&fresh, i);
        }
    }
    return fresh;
}

bool sj_value_rules_name_imports(const sj_value_rules *rules)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        if (strchr(rules->items[i].function.text, '!') != NULL) {
            return true;
        }
    }
    return false;
}

sj_rule_set sj_value_rules_results_of(const sj_value_rules *rules, const sj_rule_set *matched)
{
    sj_rule_set results = {0};
    SJ_EACH_RULE (i, matched) {
        const sj_value_rule *rule = &rules->items[i];
        if (!rule->is_cpu && !rule->is_memory && !rule->changes &&
            (rule->is_typed || sj_value_rule_is_late(rule))) {
            sj_rule_set_add(&results, i);
        }
    }
    return results;
}

void sj_value_rules_count_unreached(sj_value_rules *rules, const sj_rule_set *matched)
{
    SJ_EACH_RULE (i, matched) {
        if (rules->items[i].changes && sj_value_is_at_exit(rules->items[i].descriptor)) {
            atomic_fetch_add(&rules->unreached[i], 1);
        }
    }
}

bool sj_value_rules_decide_calls(const sj_value_rules *rules, const sj_rule_set *matched)
{
    SJ_EACH_RULE (i, matched) {
        const sj_value_change *change = &rules->items[i].change;
        if (rules->items[i].changes && (change->action == SJ_CHANGE_RETURN ||
                                        (change->action == SJ_CHANGE_SET &&
                                         sj_value_position(change->target) == SJ_VALUE_RESULT))) {
            return true;
        }
    }
    return false;
}

sj_rule_set sj_value_rules_typed_of(const sj_value_rules *rules, const sj_rule_set *matched,
                                    const char *symbol)
{
    const bool is_method = (symbol[0] == '-' || symbol[0] == '+') && symbol[1] == '[';
    sj_rule_set typed = {0};
    SJ_EACH_RULE (i, matched) {
        if (!is_method && rules->items[i].is_typed) {
            sj_rule_set_add(&typed, i);
        }
    }
    return typed;
}

bool sj_value_rules_measure_cpu(const sj_value_rules *rules, const sj_rule_set *matched)
{
    SJ_EACH_RULE (i, matched) {
        if (rules->items[i].is_cpu) {
            return true;
        }
    }
    return false;
}

bool sj_value_rules_measure_memory(const sj_value_rules *rules, const sj_rule_set *matched)
{
    SJ_EACH_RULE (i, matched) {
        if (rules->items[i].is_memory) {
            return true;
        }
    }
    return false;
}

bool sj_value_rules_count_memory(const sj_value_rules *rules)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        if (rules->items[i].is_memory) {
            return true;
        }
    }
    return false;
}

sj_status sj_value_rules_need_types(sj_value_rules *rules)
{
    if (atomic_load(&rules->typed) != NULL) {
        return SJ_OK;
    }
    void *memory = mmap(NULL, SJ_TYPED_FUNCTIONS * sizeof(_Atomic(sj_typed_function *)),
                        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return SJ_ENOMEM;
    }
    atomic_store(&rules->typed, memory);
    return SJ_OK;
}

void sj_value_rules_set_typed(sj_value_rules *rules, uint32_t function, sj_typed_function *typed)
{
    _Atomic(sj_typed_function *) *types = atomic_load(&rules->typed);
    if (types == NULL || function >= SJ_TYPED_FUNCTIONS || atomic_load(&types[function]) != NULL) {
        sj_typed_function_free(typed);
        return;
    }
    if (function > atomic_load(&rules->highest_typed)) { /* only one thread writes it */
        atomic_store(&rules->highest_typed, function);
    }
    atomic_store(&types[function], typed);
}

sj_status sj_value_rules_set_own(sj_value_rules *rules, uint32_t function, uint16_t positions)
{
    if (positions == 0 || sj_value_rules_typed(rules, function) != NULL) {
        return SJ_OK;
    }
    sj_typed_function *own = calloc(1, sizeof(*own));
    if (own == NULL) {
        return SJ_ENOMEM;
    }
    own->own_positions = positions;
    sj_value_rules_set_typed(rules, function, own);
    return SJ_OK;
}

const sj_typed_function *sj_value_rules_typed(const sj_value_rules *rules, uint32_t function)
{
    _Atomic(sj_typed_function *) *types = rules != NULL ? atomic_load(&rules->typed) : NULL;
    return types != NULL && function < SJ_TYPED_FUNCTIONS ? atomic_load(&types[function]) : NULL;
}

void sj_value_rules_count_types(sj_value_rules *rules, const sj_rule_set *typed, bool is_found,
                                sj_split_state split)
{
    SJ_EACH_RULE (i, typed) {
        atomic_fetch_add(is_found ? &rules->found[i] : &rules->missing[i], 1);
        if (!is_found && split != SJ_SPLIT_COMPLETE) {
            atomic_store(&rules->split[i], (uint8_t)split);
        }
    }
}

/* True if a rule stores values under positions that differ from those of the debug data, without
 * the rule's name. A result has the same position in both. */
static bool is_numbered(const sj_value_rule *rule)
{
    const bool is_result = sj_value_position(rule->stored) == SJ_VALUE_RESULT;
    return !rule->is_typed && !rule->is_cpu && !rule->is_memory &&
           (!is_result || (!rule->changes && !sj_value_rule_has_condition(rule)));
}

bool sj_value_rules_are_numbered(const sj_value_rules *rules, const sj_rule_set *matched)
{
    SJ_EACH_RULE (i, matched) {
        if (!rules->items[i].is_fresh && is_numbered(&rules->items[i])) {
            return true;
        }
    }
    return false;
}

sj_rule_set sj_value_rules_numbered_of(const sj_value_rules *rules, const sj_rule_set *matched)
{
    sj_rule_set numbered = {0};
    SJ_EACH_RULE (i, matched) {
        if (is_numbered(&rules->items[i])) {
            sj_rule_set_add(&numbered, i);
        }
    }
    return numbered;
}

void sj_value_rules_count_settled(sj_value_rules *rules, const sj_rule_set *refused)
{
    SJ_EACH_RULE (i, refused) {
        atomic_fetch_add(&rules->settled[i], 1);
    }
}

void sj_value_rules_count_managed(sj_value_rules *rules, const sj_rule_set *matched)
{
    const bool has_own = sj_value_rules_own_positions(rules, matched) != 0;
    SJ_EACH_RULE (i, matched) {
        if (rules->items[i].is_typed) {
            atomic_fetch_add(has_own ? &rules->found[i] : &rules->settled[i], 1);
        } else if (rules->items[i].is_memory) {
            atomic_fetch_add(&rules->missing[i], 1);
        }
    }
}

/* Writes the name of an enumerator, or its number. */
static void name_enumerator(const sj_typed_value *typed, uint64_t bits, sj_block_value *value,
                            char number[SJ_TYPED_NUMBER_BYTES])
{
    const uint64_t mask =
        typed->bytes < sizeof(bits) ? (UINT64_C(1) << (8 * typed->bytes)) - 1 : UINT64_MAX;
    const char *name = number;
    snprintf(number, SJ_TYPED_NUMBER_BYTES, "%llu", (unsigned long long)(bits & mask));
    for (size_t i = 0; i < typed->enumerator_count; i++) {
        if (((uint64_t)typed->enumerators[i].value & mask) == (bits & mask)) {
            name = typed->enumerators[i].name;
            break;
        }
    }
    const size_t length = strlen(name);
    value->bits = 0;
    value->note = length > SJ_VALUE_TEXT_BYTES ? SJ_VALUE_CUT : SJ_VALUE_WHOLE;
    value->text_bytes = (uint16_t)(length < SJ_VALUE_TEXT_BYTES ? length : SJ_VALUE_TEXT_BYTES);
    value->text = name;
}

/* Writes a long double of the x87, or a binary128. */
static void write_extended(const sj_typed_value *typed, const char *bytes, sj_block_value *value,
                           char number[SJ_TYPED_NUMBER_BYTES])
{
    enum { BYTES_BINARY128 = 16 };
    if (typed->bytes == BYTES_BINARY128) {
        sj_long_double_write_binary128(bytes, number);
    } else {
        sj_long_double_write_x87(bytes, number);
    }
    value->bits = 0;
    value->text = number;
    value->text_bytes = (uint16_t)strlen(number);
}

/* Reads the bits of a value from the bytes that the program copied from memory. Returns false if
 * they are too few. */
static bool read_pointed(const sj_typed_value *typed, const sj_block_value *from, uint64_t *bits)
{
    uint64_t words[2] = {0, 0};
    const size_t bytes = typed->divided_by != 0 ? sizeof(words) : typed->bytes;
    if (bytes > sizeof(words) || (size_t)typed->from_byte + bytes > from->text_bytes) {
        return false;
    }
    memcpy(words, from->text + typed->from_byte, bytes);
    *bits = typed->divided_by != 0 ? (words[1] - words[0]) / typed->divided_by : words[0];
    return true;
}

bool sj_typed_value_convert(const sj_typed_value *typed, const sj_block_value *from,
                            sj_block_value *value, char number[SJ_TYPED_NUMBER_BYTES])
{
    const uint32_t kind = sj_value_kind_of(typed->descriptor);
    uint64_t bits = from->bits >> (8 * (typed->from_byte % 8));
    *value = *from;
    value->descriptor = typed->descriptor;
    value->rule = 0;
    if (typed->is_behind) {
        value->text = NULL;
        value->text_bytes = 0;
        value->note = SJ_VALUE_WHOLE;
        if (!read_pointed(typed, from, &bits)) {
            return false;
        }
    } else if (kind == SJ_VALUE_STRING) {
        return true;
    }
    if (typed->is_extended) {
        write_extended(typed, from->text + typed->from_byte, value, number);
        return true;
    }
    const bool is_short = (kind == SJ_VALUE_INT || kind == SJ_VALUE_UINT) && typed->bytes < 4;
    if (kind == SJ_VALUE_OBJECT) {
        name_enumerator(typed, bits, value, number);
        return true;
    }
    if (is_short) {
        const uint32_t unused = 64 - 8 * (uint32_t)typed->bytes;
        bits = kind == SJ_VALUE_INT ? (uint64_t)((int64_t)(bits << unused) >> unused)
                                    : bits << unused >> unused;
    }
    value->bits = sj_value_narrow(kind, bits);
    return true;
}

/* Returns the index of a place whose value is recorded; `used`: none. Skips places that only hold a
 * length. */
static size_t find_listed(const uint8_t *descriptors, size_t used, uint8_t place)
{
    size_t at = 0;
    while (at < used && descriptors[at] != place) {
        at += sj_place_is_size(descriptors[at]) ? 2 : 1;
    }
    return at < used ? at : used;
}

static bool is_listed(const uint8_t *descriptors, size_t used, uint8_t place)
{
    return find_listed(descriptors, used, place) < used;
}

bool sj_value_places_have(const uint8_t places[SJ_PLACES_PER_FUNCTION], uint8_t place)
{
    return is_listed(places, SJ_PLACES_PER_FUNCTION, place);
}

/* Returns the limit for texts of places that follow the listed ones. */
static uint8_t limit_in_force(const uint8_t *descriptors, size_t used)
{
    for (size_t i = used; i-- > 0;) {
        if (sj_place_is_limit(descriptors[i]) &&
            (i == 0 || !sj_place_is_size(descriptors[i - 1]))) {
            return descriptors[i];
        }
    }
    return 0;
}

/* Appends a place unless it is listed already or the list is full. */
static size_t list_place(uint8_t descriptor, uint8_t *descriptors, size_t used, size_t capacity)
{
    const uint8_t place =
        sj_value_kind_of(descriptor) == SJ_VALUE_ERRNO ? (uint8_t)SJ_PLACE_ERRNO : descriptor;
    if (place == 0 || used == capacity || is_listed(descriptors, used, place)) {
        return used;
    }
    descriptors[used] = place;
    return used + 1;
}

/* Appends the place of a rule's value; for a text, its limit and length before it. */
static size_t list_value(const sj_value_rule *rule, uint8_t *descriptors, size_t used,
                         size_t capacity)
{
    const bool has_limit = rule->limit > limit_in_force(descriptors, used);
    const bool has_size = rule->length_place != 0 || rule->filled != 0;
    const size_t more = (has_limit ? 1U : 0U) + (has_size ? 2U : 0U);
    if (is_listed(descriptors, used, rule->descriptor) || used + more >= capacity) {
        return used;
    }
    if (has_limit) {
        descriptors[used++] = rule->limit;
    }
    if (rule->length_place != 0) {
        descriptors[used++] = SJ_PLACE_LENGTH;
        descriptors[used++] = rule->length_place;
    }
    if (rule->filled != 0) {
        descriptors[used++] = rule->filled;
        descriptors[used++] = rule->filled_place;
    }
    return list_place(rule->descriptor, descriptors, used, capacity);
}

void sj_value_rules_list(const sj_value_rules *rules, const sj_rule_set *matched,
                         uint8_t *descriptors, size_t used, size_t capacity)
{
    memset(descriptors + used, 0, capacity - used);
    /* List these first: conditions on the same texts need only their beginning. */
    SJ_EACH_RULE (i, matched) {
        const sj_value_rule *rule = &rules->items[i];
        if (rule->limit != 0 || rule->length_place != 0 || rule->filled != 0) {
            used = list_value(rule, descriptors, used, capacity);
        }
    }
    /* List values of conditions before the rule's own value, because they are evaluated with it. */
    SJ_EACH_RULE (i, matched) {
        const sj_value_rule *rule = &rules->items[i];
        for (size_t j = 0; j < rule->condition_count; j++) {
            const sj_value_condition *condition = &rule->conditions[j];
            used = condition->subject == SJ_CONDITION_VALUE
                       ? list_place(condition->descriptor, descriptors, used, capacity)
                       : used;
        }
        used = list_value(rule, descriptors, used, capacity);
        if (sj_value_rule_is_late(rule) && rule->condition_count != 0) { /* records at the exit */
            used = list_place(sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_ERRNO), descriptors,
                              used, capacity);
        }
    }
}

/* True if the listed text has at least the rule's limit, and its length. */
static bool has_text(const sj_value_rule *rule, const uint8_t *places, size_t listed)
{
    const uint8_t size = rule->filled != 0 ? rule->filled : (uint8_t)SJ_PLACE_LENGTH;
    const uint8_t from = rule->filled != 0 ? rule->filled_place : rule->length_place;
    return limit_in_force(places, listed) >= rule->limit &&
           (from == 0 || (listed >= 2 && places[listed - 2] == size && places[listed - 1] == from));
}

/* True if the places of a function include the places of the rule. */
static bool has_place(const sj_value_rule *rule, const uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    const bool is_errno = sj_value_kind_of(rule->descriptor) == SJ_VALUE_ERRNO;
    const uint8_t own = rule->is_cpu ? (uint8_t)SJ_PLACE_CPU_ENTRY
                        : is_errno   ? (uint8_t)SJ_PLACE_ERRNO
                                     : rule->descriptor;
    const size_t listed = find_listed(places, SJ_PLACES_PER_FUNCTION, own);
    bool has = own == 0 || (listed < SJ_PLACES_PER_FUNCTION && has_text(rule, places, listed));
    if (rule->is_memory) {
        has = has && is_listed(places, SJ_PLACES_PER_FUNCTION, SJ_PLACE_MEMORY_ENTRY);
    }
    return has;
}

bool sj_value_rules_have_capacity(const sj_value_rules *rules, size_t rule,
                                  const uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    return has_place(&rules->items[rule], places);
}

void sj_value_rules_count_crowded_types(sj_value_rules *rules, const sj_rule_set *typed)
{
    SJ_EACH_RULE (i, typed) {
        atomic_fetch_add(&rules->crowded[i], 1);
    }
}

void sj_value_rules_count_crowded(sj_value_rules *rules, const sj_rule_set *matched,
                                  const uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    SJ_EACH_RULE (i, matched) {
        if (!has_place(&rules->items[i], places)) {
            atomic_fetch_add(&rules->crowded[i], 1);
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

static bool is_call_number_met(const sj_value_rule *rule, uint64_t number)
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
           is_call_number_met(rule, atomic_fetch_add(&rules->met[number], 1) + 1);
}

bool sj_value_rules_evaluate_calls(const sj_value_rules *rules)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        if (rules->items[i].condition_count != 0 && !rules->items[i].changes) {
            return true;
        }
    }
    return false;
}

sj_rule_set sj_value_rules_called_from(const sj_value_rules *rules, const char *symbol)
{
    sj_rule_set matched = {0};
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        for (size_t j = 0; j < rules->items[i].condition_count; j++) {
            const sj_value_condition *condition = &rules->items[i].conditions[j];
            if (condition->subject == SJ_CONDITION_CALLER &&
                !atomic_load(&rules->items[i].is_withdrawn) &&
                sj_pattern_matches_symbol(&condition->text, symbol)) {
                sj_rule_set_add(&matched, i);
            }
        }
    }
    return matched;
}
