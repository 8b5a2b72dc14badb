/* Parses the conditions on the whole call of a rule about values: its "when" list. */
#include "agent/policy/policy_changes.h"
#include "agent/policy/policy_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static sj_value_rule *current_rule(const sj_policy_reader *reader)
{
    sj_value_rules *rules = reader->policy->selection.values;
    return &rules->items[rules->count];
}

static sj_value_condition *current_condition(const sj_policy_reader *reader)
{
    sj_value_rule *rule = current_rule(reader);
    return &rule->conditions[rule->condition_count];
}

static sj_status read_descriptor(sj_policy_reader *reader, json_t *value, uint64_t last,
                                 uint8_t *descriptor)
{
    uint64_t number = 0;
    SJ_TRY(sj_policy_number(reader, value, 1, last, &number));
    *descriptor |= (uint8_t)number;
    return SJ_OK;
}

sj_status sj_policy_read_register(sj_policy_reader *reader, void *target, json_t *value)
{
    return read_descriptor(reader, value, SJ_VALUE_LAST_REGISTER, target);
}

static sj_status read_argument(sj_policy_reader *reader, void *target, json_t *value)
{
    return read_descriptor(reader, value, SJ_VALUE_LAST_POSITION, target);
}

sj_status sj_policy_read_as(sj_policy_reader *reader, void *target, json_t *value)
{
    uint8_t *descriptor = target;
    size_t index = 0;
    SJ_TRY(sj_policy_word(reader, value, sj_value_kind_words + 1, SJ_VALUE_RULE_KINDS - 1, &index));
    *descriptor |= sj_value_descriptor(0, (uint32_t)index + 1);
    return SJ_OK;
}

sj_status sj_policy_read_errno(sj_policy_reader *reader, void *target, json_t *value)
{
    uint8_t *descriptor = target;
    *descriptor |= sj_value_descriptor(0, SJ_VALUE_ERRNO);
    return json_is_true(value) ? SJ_OK : sj_policy_fail(reader, false, "only true is possible");
}

static sj_status read_name(sj_policy_reader *reader, sj_value_condition *condition,
                           sj_condition_subject subject, json_t *value)
{
    condition->subject = subject;
    condition->comparison = SJ_VALUE_EQUAL;
    return sj_policy_pattern(reader, value, &condition->text);
}

static sj_status read_thread(sj_policy_reader *reader, void *target, json_t *value)
{
    return read_name(reader, target, SJ_CONDITION_THREAD, value);
}

static sj_status read_caller(sj_policy_reader *reader, void *target, json_t *value)
{
    return read_name(reader, target, SJ_CONDITION_CALLER, value);
}

sj_status sj_policy_read_whole(sj_policy_reader *reader, json_t *value, bool is_signed,
                               uint64_t *bits)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (text != NULL && text[0] >= '0' && text[0] <= '9') {
        errno = 0;
        *bits = strtoull(text, &end, 0);
    }
    if (json_is_boolean(value)) {
        *bits = json_is_true(value) ? 1 : 0;
    } else if (json_is_integer(value) && (is_signed || json_integer_value(value) >= 0)) {
        *bits = (uint64_t)json_integer_value(value);
    } else if (end == NULL || *end != '\0' || errno != 0) {
        return sj_policy_fail(reader, false,
                              "a whole number%s is needed, or a text such as \"0x7f00\"",
                              is_signed ? "" : " that is not negative");
    }
    return SJ_OK;
}

/* Reads the operand of a condition. Its type depends on the other keys. */
static sj_status read_operand(sj_policy_reader *reader, json_t *value)
{
    sj_value_condition *condition = current_condition(reader);
    const uint32_t kind = sj_value_kind_of(condition->descriptor);
    if (condition->subject == SJ_CONDITION_DURATION) {
        return sj_policy_time(reader, value, 0, &condition->bits);
    }
    if (condition->subject == SJ_CONDITION_VALUE && sj_value_is_text(kind)) {
        return condition->comparison > SJ_VALUE_UNEQUAL
                   ? sj_policy_fail(reader, false, "texts are compared with \"==\" and \"!=\" only")
                   : sj_policy_pattern(reader, value, &condition->text);
    }
    if (!sj_value_is_real(kind)) {
        return sj_policy_read_whole(reader, value, sj_value_is_signed(kind), &condition->bits);
    }
    condition->real = json_number_value(value);
    return json_is_number(value) ? SJ_OK : sj_policy_fail(reader, false, "a number is needed");
}

/* Accepts only conditions that the program itself can evaluate at that moment, without a lock. */
static sj_status check_is_evaluable(sj_policy_reader *reader, const sj_value_rule *rule)
{
    const sj_value_condition *condition = current_condition(reader);
    const uint32_t kind = sj_value_kind_of(condition->descriptor);
    const bool at_exit = sj_value_position(rule->descriptor) == SJ_VALUE_RESULT;
    if (condition->subject == SJ_CONDITION_THREAD) {
        const char *text = condition->text.text;
        const char *star = strchr(text, '*');
        return condition->text.regex == NULL && strlen(text) < SJ_CHANGE_THREAD_BYTES &&
                       strpbrk(text, "?[\\") == NULL && (star == NULL || star[1] == '\0')
                   ? SJ_OK
                   : sj_policy_fail(reader, false,
                                    "where calls are changed, a thread's name is written whole or "
                                    "with a * at its end");
    }
    if (condition->subject == SJ_CONDITION_CALLER) {
        return SJ_OK;
    }
    if (condition->subject != SJ_CONDITION_VALUE) {
        return sj_policy_fail(reader, false,
                              "calls are changed under conditions on values, errno, threads and "
                              "callers; "
                              "\"from\", \"times\" and \"one_in\" of \"change\" count calls");
    }
    if (sj_value_is_real(kind) || sj_value_is_text(kind)) {
        return sj_policy_fail(reader, false,
                              "calls are changed under conditions on whole numbers only");
    }
    return sj_value_is_at_exit(condition->descriptor) == at_exit
               ? SJ_OK
               : sj_policy_fail(reader, false,
                                "arguments are known at the entry, the result and errno at the "
                                "exit, where this rule is not");
}

static const sj_policy_key keys[] = {
    {"argument", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_condition, descriptor), .parse = read_argument},
    {"result", SJ_KEY_TRUE, .bytes = 0},
    {"errno", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_condition, descriptor),
     .parse = sj_policy_read_errno},
    {"duration", SJ_KEY_TRUE, .bytes = 0},
    {"thread", SJ_KEY_CUSTOM, .parse = read_thread},
    {"caller", SJ_KEY_CUSTOM, .parse = read_caller},
    {"call", SJ_KEY_TRUE, .bytes = 0},
    {"as", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_condition, descriptor), .parse = sj_policy_read_as},
    {"op", SJ_KEY_WORD, SJ_MEMBER(sj_value_condition, comparison), SJ_VALUE_COMPARISON_WORDS},
    {"value", SJ_KEY_CUSTOM, .parse = NULL}};

static sj_status read_condition(sj_policy_reader *reader, json_t *value)
{
    static const char *const subjects[] = {"argument", "result", "errno", "duration",
                                           "thread",   "caller", "call"};
    size_t subject_count = 0;
    SJ_TRY(sj_policy_object(reader, value, current_condition(reader), SJ_KEY_LIST(keys)));
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        subject_count += json_object_get(value, subjects[i]) != NULL;
    }
    if (subject_count != 1) {
        return sj_policy_fail(
            reader, false,
            "one of \"argument\", \"result\", \"errno\", \"duration\", \"thread\", "
            "\"caller\" and \"call\" is needed");
    }
    if (json_object_get(value, "duration") != NULL) {
        current_condition(reader)->subject = SJ_CONDITION_DURATION;
    } else if (json_object_get(value, "call") != NULL) {
        current_condition(reader)->subject = SJ_CONDITION_CALL;
    }
    const bool is_name = current_condition(reader)->text.text != NULL;
    const bool has_kind =
        json_object_get(value, "argument") != NULL || json_object_get(value, "result") != NULL;
    if ((json_object_get(value, "as") != NULL) != has_kind) {
        return sj_policy_fail(reader, false, "\"as\" goes with \"argument\" and \"result\"");
    }
    json_t *operand = json_object_get(value, "value");
    if (is_name) {
        return operand == NULL && json_object_get(value, "op") == NULL
                   ? SJ_OK
                   : sj_policy_fail(reader, false, "a name has no \"op\" and no \"value\"");
    }
    if (operand == NULL || json_object_get(value, "op") == NULL) {
        return sj_policy_fail(reader, false, "both \"op\" and \"value\" are needed");
    }
    sj_policy_enter(reader, "value", 0);
    SJ_TRY(read_operand(reader, operand));
    sj_policy_leave(reader);
    return SJ_OK;
}

sj_status sj_policy_read_conditions(sj_policy_reader *reader, json_t *list, bool changes)
{
    sj_value_rule *rule = current_rule(reader);
    if (json_array_size(list) == 0 || json_array_size(list) > SJ_VALUE_CONDITIONS) {
        return sj_policy_fail(reader, false, "a list of 1 to %d conditions is needed",
                              SJ_VALUE_CONDITIONS);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        sj_policy_enter(reader, NULL, i);
        SJ_TRY(read_condition(reader, json_array_get(list, i)));
        if (changes) {
            SJ_TRY(check_is_evaluable(reader, rule));
        }
        rule->condition_count++;
        sj_policy_leave(reader);
    }
    return SJ_OK;
}
