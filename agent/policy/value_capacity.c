#include "agent/policy/value_capacity.h"

#include "proto/block/call_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 512 };

void sj_value_capacity_list_managed(const sj_value_rules *rules, const sj_rule_set *matched,
                                    size_t capacity, uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    size_t first = sj_value_rules_measure_cpu(rules, matched) ? 1 : 0;
    size_t used = 0;
    places[0] = SJ_PLACE_CPU_ENTRY;
    if (sj_value_rules_own_positions(rules, matched) != 0) {
        places[first++] = SJ_PLACE_OWN_VALUES;
    }
    sj_value_rules_list(rules, matched, places, first, SJ_PLACES_PER_FUNCTION);
    for (size_t i = 0; i < SJ_PLACES_PER_FUNCTION; i++) {
        if (used == capacity) {
            places[i] = 0;
        } else if (places[i] != 0 && !sj_place_is_limit(places[i])) {
            used++;
        }
    }
}

/* True for methods of Mono (NAMESPACE.CLASS:METHOD) and Java (PACKAGE.CLASS.METHOD). */
static bool is_method(const char *pattern)
{
    const char *colon = strchr(pattern, ':');
    return strchr(pattern, '!') == NULL && pattern[0] != '-' && pattern[0] != '+' &&
           (colon != NULL ? colon[1] != ':' : strchr(pattern, '.') != NULL);
}

static bool has_capacity(const sj_value_rules *rules, size_t rule, size_t managed_values,
                         size_t *most)
{
    const char *pattern = rules->items[rule].function.text;
    const sj_rule_set named = sj_value_rules_match(rules, pattern);
    uint8_t places[SJ_PLACES_PER_FUNCTION];
    if (!sj_rule_set_has(&named, rule)) {
        return true; /* the policy redacts the texts of the function */
    }
    if (is_method(pattern)) {
        const sj_rule_set managed = sj_value_rules_of_managed(rules, &named);
        const sj_rule_set within =
            sj_value_rules_within(rules, &managed, sj_call_text_parameters(pattern));
        *most = managed_values;
        sj_value_capacity_list_managed(rules, &within, managed_values, places);
        return !sj_rule_set_has(&within, rule) || sj_value_rules_have_capacity(rules, rule, places);
    }
    *most = SJ_PLACES_PER_FUNCTION;
    if (rules->items[rule].is_cpu) {
        return true; /* CPU time has a place of its own, before the values */
    }
    sj_value_rules_list(rules, &named, places, 0, SJ_PLACES_PER_FUNCTION);
    return sj_value_rules_have_capacity(rules, rule, places);
}

static void write_crowded(const sj_value_rule *rule, size_t most, char text[TEXT_BYTES])
{
    char what[32] = "the result";
    const uint32_t position = sj_value_position(rule->descriptor);
    if (position != SJ_VALUE_RESULT) {
        snprintf(what, sizeof(what), "argument %" PRIu32, position);
    }
    snprintf(text, TEXT_BYTES,
             "rule '%s' will not record %s of %.100s: at most %zu values of a function are "
             "recorded, and other rules come first; leave some values out",
             rule->name, what, rule->function.text, most);
}

void sj_value_capacity_each_crowded(const sj_value_rules *rules, size_t managed_values,
                                    void *context, void (*visit)(void *context, const char *text))
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        char text[TEXT_BYTES];
        size_t most = 0;
        const sj_value_rule *rule = &rules->items[i];
        if (!rule->is_typed && !rule->is_memory && !rule->changes &&
            !has_capacity(rules, i, managed_values, &most)) {
            write_crowded(rule, most, text);
            visit(context, text);
        }
    }
}
