/* Parses the part of a policy about values of arguments and results. */
#include "agent/policy/change_obstacle.h"
#include "agent/policy/policy_changes.h"
#include "agent/policy/policy_reader.h"
#include "agent/policy/value_signature.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static sj_value_rule *current_rule(const sj_policy_reader *reader)
{
    sj_value_rules *rules = reader->policy->selection.values;
    return &rules->items[rules->count];
}

/* Reads the operand of a rule's own condition. Its type depends on "as". */
static sj_status read_operand(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_value_rule *rule = target;
    const uint32_t kind = sj_value_kind_of(rule->descriptor);
    if (sj_value_is_text(kind)) {
        return sj_policy_pattern(reader, value, &rule->own.text);
    }
    if (!sj_value_is_real(kind)) {
        return sj_policy_read_whole(reader, value, sj_value_is_signed(kind), &rule->own.bits);
    }
    if (!json_is_number(value)) {
        return sj_policy_fail(reader, false, "a number is needed");
    }
    rule->own.real = json_number_value(value);
    return SJ_OK;
}

/* Parses a condition on the value itself, or a list of conditions on the whole call. */
static sj_status read_when(sj_policy_reader *reader, json_t *value, bool changes)
{
    static const sj_policy_key keys[] = {
        {"op", SJ_KEY_WORD, SJ_MEMBER(sj_value_rule, own.comparison), SJ_VALUE_COMPARISON_WORDS},
        {"value", SJ_KEY_CUSTOM, .parse = read_operand}};
    if (json_is_array(value)) {
        return sj_policy_read_conditions(reader, value, changes);
    }
    SJ_TRY(sj_policy_object(reader, value, current_rule(reader), SJ_KEY_LIST(keys)));
    if (json_object_get(value, "op") == NULL || json_object_get(value, "value") == NULL) {
        return sj_policy_fail(reader, false, "both \"op\" and \"value\" are needed");
    }
    if (sj_value_is_text(sj_value_kind_of(current_rule(reader)->descriptor)) &&
        current_rule(reader)->own.comparison > SJ_VALUE_UNEQUAL) {
        return sj_policy_fail(reader, false, "texts are compared with \"==\" and \"!=\" only");
    }
    return SJ_OK;
}

static sj_status read_text_bytes(sj_policy_reader *reader, void *target, json_t *value)
{
    uint8_t *limit = target;
    uint64_t bytes = 0;
    SJ_TRY(sj_policy_number(reader, value, 1, SJ_VALUE_TEXT_MOST, &bytes));
    *limit = sj_place_limit((uint32_t)bytes);
    return SJ_OK;
}

/* Names a rule without a name after its function. */
static void finish_rule(sj_value_rule *rule, size_t row)
{
    rule->row = row;
    if (rule->name[0] == '\0') {
        const size_t bytes = strlen(rule->function.text);
        const size_t most = SJ_VALUE_RULE_BYTES - 1;
        memcpy(rule->name, rule->function.text, bytes < most ? bytes : most);
    }
}

/* Returns the number of places that the rules for the function of `added` need, as
 * sj_value_rules_list lists them. */
static size_t count_places(const sj_value_rules *rules, const sj_value_rule *added)
{
    uint8_t listed[4 * SJ_PLACES_PER_FUNCTION];
    sj_rule_set matched = {0};
    bool has_cpu = false;
    bool has_memory = false;
    for (size_t i = 0; i <= rules->count; i++) {
        const sj_value_rule *rule = &rules->items[i];
        if (strcmp(rule->function.text, added->function.text) == 0) {
            sj_rule_set_add(&matched, i);
            has_cpu |= rule->is_cpu;
            has_memory |= rule->is_memory;
        }
    }
    sj_value_rules_list(rules, &matched, listed, 0, sizeof(listed));
    const uint8_t *end = memchr(listed, 0, sizeof(listed));
    return (end != NULL ? (size_t)(end - listed) : sizeof(listed)) + has_cpu + has_memory;
}

/* Checks that the values of one function fit its capacity, and that their positions have one
 * meaning. Rules with the same pattern are about the same functions. */
static sj_status check_capacity(sj_policy_reader *reader)
{
    const sj_value_rules *rules = reader->policy->selection.values;
    const sj_value_rule *added = current_rule(reader);
    uint8_t seen[SJ_VALUE_RULES + 1] = {0};
    size_t count = 0;
    for (size_t i = 0; i <= rules->count; i++) {
        const sj_value_rule *rule = &rules->items[i];
        if (rule->is_cpu || rule->is_memory || added->is_cpu || added->is_memory ||
            strcmp(rule->function.text, added->function.text) != 0) {
            continue;
        }
        if (rule->is_source != added->is_source) {
            return sj_policy_fail(reader, false,
                                  "\"%.100s\" has rules by signature and by argument number, which "
                                  "count differently: write all of them in one way",
                                  added->function.text);
        }
        if (memchr(seen, rule->descriptor, sizeof(seen)) == NULL) {
            seen[count++] = rule->descriptor;
        }
    }
    return count <= SJ_VALUES_PER_FUNCTION && count_places(rules, added) <= SJ_PLACES_PER_FUNCTION
               ? SJ_OK
               : sj_policy_fail(reader, false,
                                "at most %d values of a function can be recorded, fewer with "
                                "lengths of texts, conditions on others, and costs%s",
                                SJ_VALUES_PER_FUNCTION,
                                added->is_source && !added->is_cpu && !added->is_memory
                                    ? ": name the other arguments \"_\""
                                    : "");
}

/* Parses a rule that measures the CPU time or memory of a function's calls, or both. */
static sj_status read_costs(sj_policy_reader *reader, json_t *value, size_t row)
{
    const size_t keys = (size_t)(json_object_get(value, "name") != NULL) +
                        (json_object_get(value, "cpu") != NULL) +
                        (json_object_get(value, "memory") != NULL) + 1;
    if (json_object_get(value, "function") == NULL || json_object_size(value) != keys) {
        return sj_policy_fail(reader, false,
                              "\"cpu\" and \"memory\" need a \"function\", and go with each other "
                              "and a \"name\" only");
    }
    current_rule(reader)->is_source = true;
    finish_rule(current_rule(reader), row);
    SJ_TRY(check_capacity(reader));
    reader->policy->selection.values->count++;
    return SJ_OK;
}

/* Parses a rule with only a function. The types of its values come from debug data. */
static sj_status read_typed(sj_policy_reader *reader, size_t row)
{
    sj_value_rules *rules = reader->policy->selection.values;
    sj_value_rule *rule = current_rule(reader);
    if (sj_signature_is_method(rule->function.text)) {
        return sj_policy_fail(reader, false,
                              "types of methods of Objective-C are not read: write a "
                              "\"signature\", or \"argument\" and \"as\"");
    }
    if (sj_value_rules_need_types(rules) != SJ_OK) {
        return sj_policy_fail(reader, false, "no memory");
    }
    rule->is_typed = true;
    rule->is_source = true;
    finish_rule(rule, row);
    SJ_TRY(check_capacity(reader));
    rules->count++;
    return SJ_OK;
}

/* Checks that the conditions number arguments by registers, as the rule does. */
static sj_status check_registers(sj_policy_reader *reader)
{
    const sj_value_rule *rule = current_rule(reader);
    for (size_t i = 0; i < rule->condition_count; i++) {
        const sj_value_condition *condition = &rule->conditions[i];
        if (condition->subject == SJ_CONDITION_VALUE &&
            sj_value_position(condition->descriptor) > SJ_VALUE_LAST_REGISTER) {
            return sj_policy_fail(reader, false, "arguments from 1 to %d have a register",
                                  SJ_VALUE_LAST_REGISTER);
        }
    }
    return SJ_OK;
}

/* Checks that at least one language allows the change. */
static sj_status check_change_possible(sj_policy_reader *reader)
{
    const sj_value_rule *rule = current_rule(reader);
    const sj_change_obstacle java = sj_change_obstacle_find(rule, SJ_LINK_LANGUAGE_JVM);
    if (java == SJ_CHANGE_POSSIBLE ||
        sj_change_obstacle_find(rule, SJ_LINK_LANGUAGE_MONO) == SJ_CHANGE_POSSIBLE ||
        sj_change_obstacle_find(rule, SJ_LINK_LANGUAGE_OBJC) == SJ_CHANGE_POSSIBLE) {
        return SJ_OK;
    }
    return sj_policy_fail(reader, false, "no function obeys this: %s; and %s",
                          sj_change_obstacle_texts[SJ_CHANGE_THROWS],
                          sj_change_obstacle_texts[java]);
}

/* Parses the other keys of a rule about one value, whose argument is numbered by registers. */
static sj_status read_numbered(sj_policy_reader *reader, json_t *value, size_t row)
{
    const bool is_errno = json_object_get(value, "errno") != NULL;
    if (json_object_get(value, "function") == NULL ||
        (json_object_get(value, "as") == NULL) != is_errno) {
        return sj_policy_fail(reader, false, "both \"function\" and \"as\" are needed");
    }
    if ((json_object_get(value, "argument") != NULL) + (json_object_get(value, "result") != NULL) +
            is_errno !=
        1) {
        return sj_policy_fail(reader, false,
                              "either \"argument\": its number, or \"result\": true is needed");
    }
    if (current_rule(reader)->limit != 0 &&
        sj_value_kind_of(current_rule(reader)->descriptor) != SJ_VALUE_STRING) {
        return sj_policy_fail(reader, false, "\"text_bytes\" goes with \"as\": \"string\"");
    }
    json_t *when = json_object_get(value, "when");
    if (when != NULL) {
        sj_policy_enter(reader, "when", 0);
        SJ_TRY(read_when(reader, when, json_object_get(value, "change") != NULL));
        SJ_TRY(check_registers(reader));
        sj_policy_leave(reader);
    }
    json_t *change = json_object_get(value, "change");
    if (change != NULL) {
        sj_policy_enter(reader, "change", 0);
        SJ_TRY(sj_policy_read_change(reader, change));
        SJ_TRY(check_change_possible(reader));
        sj_policy_leave(reader);
    }
    current_rule(reader)->stored = current_rule(reader)->descriptor;
    finish_rule(current_rule(reader), row);
    SJ_TRY(check_capacity(reader));
    reader->policy->selection.values->count++;
    return SJ_OK;
}

/* Parses the conditions of a rule with a signature. They number arguments like its parameters. */
static sj_status read_source_conditions(sj_policy_reader *reader, json_t *value,
                                        const sj_signature *signature)
{
    sj_value_rule *rule = current_rule(reader);
    json_t *when = json_object_get(value, "when");
    if (when == NULL) {
        return SJ_OK;
    }
    sj_policy_enter(reader, "when", 0);
    SJ_TRY(sj_policy_read_conditions(reader, when, false));
    for (size_t i = 0; i < rule->condition_count; i++) {
        sj_value_condition *condition = &rule->conditions[i];
        size_t place = 0;
        if (condition->subject != SJ_CONDITION_VALUE ||
            sj_value_kind_of(condition->descriptor) == SJ_VALUE_ERRNO) {
            continue;
        }
        while (place < signature->count &&
               signature->values[place].source != condition->descriptor) {
            place++;
        }
        if (place == signature->count) {
            return sj_policy_fail(reader, false,
                                  "condition %zu is not about a value of the signature; number and "
                                  "kind must be those of one of its values",
                                  i + 1);
        }
        condition->descriptor = signature->values[place].place;
    }
    sj_policy_leave(reader);
    return SJ_OK;
}

/* Adds a rule for one value of a signature. The first one uses the rule that was parsed from the
 * row, the others a copy of it. */
static sj_status add_source_rule(sj_policy_reader *reader, json_t *value,
                                 const sj_signature *signature,
                                 const sj_signature_value *parameter_value, size_t row,
                                 uint8_t limit)
{
    sj_value_rule *rule = current_rule(reader);
    if (reader->policy->selection.values->count == SJ_VALUE_RULES) {
        return sj_policy_fail(reader, false, "at most %d values can be recorded", SJ_VALUE_RULES);
    }
    if (rule->function.text == NULL) {
        SJ_TRY(sj_policy_pattern(reader, json_object_get(value, "function"), &rule->function));
        if (json_object_get(value, "name") != NULL) {
            SJ_TRY(sj_policy_text(reader, json_object_get(value, "name"), 1, rule->name,
                                  sizeof(rule->name)));
        }
    }
    rule->descriptor = parameter_value->place;
    rule->stored = parameter_value->source;
    rule->is_source = true;
    rule->limit = !sj_value_is_text(sj_value_kind_of(parameter_value->place)) ? 0
                  : parameter_value->limit > limit ? parameter_value->limit
                                                   : limit;
    rule->length_place = parameter_value->length;
    rule->filled = parameter_value->filled;
    rule->filled_place = parameter_value->filled_place;
    SJ_TRY(read_source_conditions(reader, value, signature));
    finish_rule(rule, row);
    SJ_TRY(check_capacity(reader));
    reader->policy->selection.values->count++;
    return SJ_OK;
}

/* Parses the other keys of a rule with a signature, and adds a rule for each of its values. */
static sj_status read_signature(sj_policy_reader *reader, json_t *value, size_t row)
{
    const char *text = json_string_value(json_object_get(value, "signature"));
    sj_signature signature;
    sj_error error = {0};
    if (json_object_get(value, "function") == NULL || json_object_get(value, "as") != NULL ||
        json_object_get(value, "argument") != NULL || json_object_get(value, "result") != NULL ||
        (json_object_get(value, "when") != NULL &&
         !json_is_array(json_object_get(value, "when"))) ||
        json_object_get(value, "change") != NULL) {
        return sj_policy_fail(reader, false,
                              "a \"signature\" needs a \"function\", and goes without \"as\", "
                              "\"argument\", \"result\" and \"change\"; its \"when\" is a list");
    }
    const char *function = current_rule(reader)->function.text;
    const uint8_t limit = current_rule(reader)->limit; /* applies to all texts of the signature */
    sj_policy_enter(reader, "signature", 0);
    if (text == NULL) {
        return sj_policy_fail(reader, false, "a text such as \"(path:str, flags:hex) -> int\"");
    }
    if (sj_signature_parse(text, SJ_CONVENTION_NATIVE, sj_signature_is_method(function), &signature,
                           &error) != SJ_OK) {
        return sj_policy_fail(reader, false, "%s", error.text);
    }
    for (size_t i = 0; i < signature.count; i++) {
        sj_policy_leave(reader);
        SJ_TRY(add_source_rule(reader, value, &signature, &signature.values[i], row, limit));
        sj_policy_enter(reader, "signature", 0);
    }
    sj_policy_leave(reader);
    return SJ_OK;
}

/* "when", "change" and "signature" come last, because they depend on other keys. */
static const sj_policy_key rule_keys[] = {
    {"name", SJ_KEY_TEXT, SJ_MEMBER(sj_value_rule, name), .least = 1},
    {"function", SJ_KEY_PATTERN, SJ_MEMBER(sj_value_rule, function)},
    {"signature", SJ_KEY_CUSTOM, .parse = NULL},
    {"argument", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_rule, descriptor),
     .parse = sj_policy_read_register},
    {"result", SJ_KEY_TRUE, .bytes = 0},
    {"as", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_rule, descriptor), .parse = sj_policy_read_as},
    {"when", SJ_KEY_CUSTOM, .parse = NULL},
    {"change", SJ_KEY_CUSTOM, .parse = NULL},
    {"cpu", SJ_KEY_TRUE, SJ_MEMBER(sj_value_rule, is_cpu)},
    {"memory", SJ_KEY_TRUE, SJ_MEMBER(sj_value_rule, is_memory)},
    {"errno", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_rule, descriptor), .parse = sj_policy_read_errno},
    {"text_bytes", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_rule, limit), .parse = read_text_bytes}};

static sj_status read_rule(sj_policy_reader *reader, json_t *value, size_t row)
{
    if (reader->policy->selection.values->count == SJ_VALUE_RULES) {
        return sj_policy_fail(reader, false, "at most %d values can be recorded", SJ_VALUE_RULES);
    }
    SJ_TRY(sj_policy_object(reader, value, current_rule(reader), SJ_KEY_LIST(rule_keys)));
    if (current_rule(reader)->is_cpu || current_rule(reader)->is_memory) {
        return read_costs(reader, value, row);
    }
    const size_t keys_of_typed = 1U + (json_object_get(value, "name") != NULL) +
                                 (json_object_get(value, "text_bytes") != NULL);
    if (json_object_get(value, "function") != NULL && json_object_size(value) == keys_of_typed) {
        return read_typed(reader, row);
    }
    return json_object_get(value, "signature") != NULL ? read_signature(reader, value, row)
                                                       : read_numbered(reader, value, row);
}

sj_status sj_policy_read_values(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_selection *selection = target;
    if (!json_is_array(value) || json_array_size(value) > SJ_VALUE_RULES) {
        return sj_policy_fail(reader, false, "a list [ ] of at most %d rules is needed",
                              SJ_VALUE_RULES);
    }
    sj_value_rules_free(selection->values);
    selection->values = NULL;
    SJ_TRY(sj_value_rules_new(&selection->values));
    for (size_t i = 0; i < json_array_size(value); i++) {
        sj_policy_enter(reader, NULL, i);
        SJ_TRY(read_rule(reader, json_array_get(value, i), i));
        sj_policy_leave(reader);
    }
    return SJ_OK;
}
