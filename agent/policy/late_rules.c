/* Design notes.
 *
 * Records hold the index of a rule in the list, and probes exist for the values that it asks for.
 * So a list in use only grows, in place. An added rule is complete before `count` includes it, and
 * readers stay below `count`. */
#include "agent/policy/value_rules.h"

#include <string.h>

static bool same_text(const char *left, const char *right)
{
    return strcmp(left != NULL ? left : "", right != NULL ? right : "") == 0;
}

/* Copies the conditions on the caller. Their texts are borrowed. */
static size_t copy_callers(const sj_value_rule *rule,
                           sj_value_condition callers[SJ_VALUE_CONDITIONS])
{
    size_t count = 0;
    for (size_t i = 0; i < rule->condition_count; i++) {
        if (rule->conditions[i].subject == SJ_CONDITION_CALLER) {
            callers[count++] = rule->conditions[i];
        }
    }
    return count;
}

bool sj_value_rule_same_place(const sj_value_rule *left, const sj_value_rule *right)
{
    sj_value_condition left_callers[SJ_VALUE_CONDITIONS];
    sj_value_condition right_callers[SJ_VALUE_CONDITIONS];
    const size_t left_count = copy_callers(left, left_callers);
    const size_t right_count = copy_callers(right, right_callers);
    return strcmp(left->name, right->name) == 0 && left->descriptor == right->descriptor &&
           same_text(left->function.text, right->function.text) &&
           sj_value_conditions_same(left_callers, left_count, right_callers, right_count);
}

static bool is_alike(const sj_value_rule *left, const sj_value_rule *right)
{
    return left->changes == right->changes && (left->changes ? sj_value_rule_same_place(left, right)
                                                             : sj_value_rule_same(left, right));
}

/* Returns the rule that corresponds to rule `index` of `wanted`; NULL: none. The n-th of several
 * equal rules corresponds to the n-th of them in `rules`. */
static sj_value_rule *find_alike(sj_value_rules *rules, const sj_value_rules *wanted, size_t index)
{
    const sj_value_rule *wanted_rule = &wanted->items[index];
    size_t missing = 0;
    for (size_t i = 0; i <= index; i++) {
        missing += is_alike(&wanted->items[i], wanted_rule) ? 1 : 0;
    }
    for (size_t i = 0; i < rules->count; i++) {
        missing -= is_alike(&rules->items[i], wanted_rule) ? 1 : 0;
        if (missing == 0) {
            return &rules->items[i];
        }
    }
    return NULL;
}

/* True if this rule numbers arguments by a signature, and another rule of the function by
 * registers, or the reverse. */
static bool counts_otherwise(const sj_value_rules *rules, const sj_value_rule *rule)
{
    for (size_t i = 0; i < rules->count; i++) {
        const sj_value_rule *other = &rules->items[i];
        if (!other->is_cpu && !other->is_memory && other->is_source != rule->is_source &&
            same_text(other->function.text, rule->function.text)) {
            return true;
        }
    }
    return false;
}

/* True if the other rule asks for at least as much of the same text. */
static bool has_text_of(const sj_value_rule *other, const sj_value_rule *rule)
{
    const bool is_sized = rule->length_place != 0 || rule->filled != 0;
    return rule->limit <= other->limit &&
           (!is_sized ||
            (other->length_place == rule->length_place && other->filled == rule->filled &&
             other->filled_place == rule->filled_place));
}

/* True if existing probes record the rule's text, but less of it, or with another length. */
static bool wants_more_text(const sj_value_rules *rules, const sj_value_rule *rule)
{
    bool is_recorded = false;
    for (size_t i = 0; i < rules->count; i++) {
        const sj_value_rule *other = &rules->items[i];
        if (other->is_fresh || other->descriptor != rule->descriptor ||
            !same_text(other->function.text, rule->function.text)) {
            continue;
        }
        if (has_text_of(other, rule)) {
            return false;
        }
        is_recorded = true;
    }
    return is_recorded;
}

/* Returns the reason why a rule cannot start in a running program; NULL: it can. */
static const char *obstacle_of(const sj_value_rules *rules, const sj_value_rule *rule)
{
    if (rules->count == SJ_VALUE_RULES) {
        return "the recording has had as many rules as it can have: begin another one";
    }
    if (wants_more_text(rules, rule)) {
        return "an earlier rule has said how much of this text is recorded: record again for more";
    }
    if (!rule->is_cpu && counts_otherwise(rules, rule)) {
        return "signatures and numbers of arguments count differently: write it as this function's "
               "others";
    }
    return NULL;
}

static sj_status copy_pattern(sj_pattern *pattern)
{
    const sj_pattern from = *pattern;
    *pattern = (sj_pattern){0};
    return from.text != NULL ? sj_pattern_make(from.text, pattern, NULL) : SJ_OK;
}

/* Gives a copied rule its own patterns. A pattern that cannot be copied becomes empty. */
static sj_status own_patterns(sj_value_rule *rule)
{
    sj_status status = copy_pattern(&rule->function);
    const sj_status own = copy_pattern(&rule->own.text);
    status = status == SJ_OK ? own : status;
    for (size_t i = 0; i < SJ_VALUE_CONDITIONS; i++) {
        const sj_status copied = copy_pattern(&rule->conditions[i].text);
        status = status == SJ_OK ? copied : status;
    }
    return status;
}

static sj_status append_rule(sj_value_rules *rules, const sj_value_rule *rule)
{
    SJ_TRY(rule->is_typed ? sj_value_rules_need_types(rules) : SJ_OK);
    sj_value_rule *added = &rules->items[rules->count];
    *added = *rule;
    added->came_late = true;
    added->is_fresh = true;
    const sj_status status = own_patterns(added);
    if (status != SJ_OK) {
        sj_pattern_free(&added->function);
        sj_pattern_free(&added->own.text);
        for (size_t i = 0; i < SJ_VALUE_CONDITIONS; i++) {
            sj_pattern_free(&added->conditions[i].text);
        }
        *added = (sj_value_rule){0};
        return status;
    }
    rules->count++;
    return SJ_OK;
}

/* Marks an existing rule as one of the current policy. */
static void renew_rule(sj_value_rule *rule, size_t row)
{
    rule->is_former = false;
    rule->row = row;
    rule->is_fresh = rule->is_fresh || atomic_load(&rule->is_withdrawn);
    atomic_store(&rule->is_withdrawn, false);
}

sj_status
sj_value_rules_add_missing(sj_value_rules *rules, const sj_value_rules *wanted, void *context,
                           void (*refuse)(void *context, const char *rule, const char *why))
{
    for (size_t i = 0; i < rules->count; i++) {
        rules->items[i].is_former = true;
    }
    for (size_t i = 0; wanted != NULL && i < wanted->count; i++) {
        sj_value_rule *alike = find_alike(rules, wanted, i);
        if (alike != NULL) {
            renew_rule(alike, wanted->items[i].row);
            continue;
        }
        const char *why = obstacle_of(rules, &wanted->items[i]);
        if (why != NULL) {
            refuse(context, wanted->items[i].name, why);
        } else {
            SJ_TRY(append_rule(rules, &wanted->items[i]));
        }
    }
    return SJ_OK;
}

void sj_value_rules_remember(const sj_value_rules *rules, sj_value_rules_past *past)
{
    *past = (sj_value_rules_past){.count = rules != NULL ? rules->count : 0};
    for (size_t i = 0; i < past->count; i++) {
        past->rows[i] = rules->items[i].row;
        past->are_former[i] = rules->items[i].is_former;
        past->are_withdrawn[i] = atomic_load(&rules->items[i].is_withdrawn);
    }
}

void sj_value_rules_undo(sj_value_rules *rules, const sj_value_rules_past *past)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        sj_value_rule *rule = &rules->items[i];
        const bool is_added = i >= past->count;
        rule->is_former = is_added || past->are_former[i];
        rule->row = is_added ? rule->row : past->rows[i];
        atomic_store(&rule->is_withdrawn, is_added || past->are_withdrawn[i]);
    }
}

void sj_value_rules_settle(sj_value_rules *rules)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        rules->items[i].is_fresh = false;
    }
}
