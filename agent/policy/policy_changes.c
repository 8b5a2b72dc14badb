/* Parses the part of a rule about values that describes a change. */
#include "agent/policy/policy_changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ERROR_MAX = 4095 };
#define DELAY_MAX_NS UINT64_C(60000000000)

static sj_status read_as(sj_policy_reader *reader, void *target, json_t *value)
{
    const uint8_t *descriptor = target;
    SJ_TRY(sj_policy_read_as(reader, target, value));
    return sj_value_is_text(sj_value_kind_of(*descriptor))
               ? sj_policy_fail(reader, false, "texts and objects cannot be set")
               : SJ_OK;
}

/* Parses a number into the bits of a float or a double. */
static sj_status read_real(sj_policy_reader *reader, json_t *value, uint32_t kind, uint64_t *bits)
{
    if (!json_is_number(value)) {
        return sj_policy_fail(reader, false, "a number is needed");
    }
    const double real = json_number_value(value);
    const float single = (float)real;
    *bits = 0;
    if (kind == SJ_VALUE_FLOAT) {
        memcpy(bits, &single, sizeof(single));
    } else {
        memcpy(bits, &real, sizeof(real));
    }
    return SJ_OK;
}

static sj_status read_bits(sj_policy_reader *reader, sj_value_change *change, json_t *value)
{
    const uint32_t kind = sj_value_kind_of(change->target);
    const char *text = json_string_value(value);
    char *end = NULL;
    if (sj_value_is_real(kind)) {
        return read_real(reader, value, kind, &change->bits);
    }
    if (json_is_boolean(value)) {
        change->bits = json_is_true(value) ? 1 : 0;
        return SJ_OK;
    }
    if (json_is_integer(value)) {
        change->bits = sj_value_narrow(kind, (uint64_t)json_integer_value(value));
        return (int64_t)change->bits == json_integer_value(value)
                   ? SJ_OK
                   : sj_policy_fail(reader, false, "the number does not fit the kind \"%s\"",
                                    sj_value_kind_words[kind]);
    }
    errno = 0;
    if (text != NULL && text[0] >= '0' && text[0] <= '9') {
        change->bits = strtoull(text, &end, 0);
    }
    return end != NULL && *end == '\0' && errno == 0
               ? SJ_OK
               : sj_policy_fail(reader, false,
                                "a whole number is needed, or a text such as \"0x7f00\"");
}

static sj_status read_delay(sj_policy_reader *reader, void *target, json_t *value)
{
    uint64_t *delay_ns = target;
    SJ_TRY(sj_policy_time(reader, value, 1, delay_ns));
    return *delay_ns <= DELAY_MAX_NS ? SJ_OK : sj_policy_fail(reader, false, "at most a minute");
}

static sj_status read_throw(sj_policy_reader *reader, void *target, json_t *value)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.$";
    const char *name = json_string_value(value);
    char *thrown = target;
    if (name == NULL || name[0] == '\0' || strlen(name) >= SJ_CHANGE_THROWN_BYTES ||
        name[strspn(name, letters)] != '\0') {
        return sj_policy_fail(reader, false,
                              "the name of a class such as \"java.io.IOException\" is needed");
    }
    memcpy(thrown, name, strlen(name));
    return SJ_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Parses the bytes of a text or, after 0x, hexadecimal digits. */
static sj_status read_write(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_value_change *change = target;
    const char *text = json_string_value(value);
    const bool is_hex = text != NULL && text[0] == '0' && text[1] == 'x';
    const size_t length = text != NULL ? strlen(text) - (is_hex ? 2 : 0) : 0;
    const size_t bytes = is_hex ? length / 2 : length;
    if (bytes == 0 || bytes > sizeof(change->data) || (is_hex && length % 2 != 0)) {
        return sj_policy_fail(reader, false, "a text of 1 to %d bytes is needed, or \"0x6f6b00\"",
                              SJ_CHANGE_DATA_BYTES);
    }
    for (size_t i = 0; i < bytes; i++) {
        const int high = is_hex ? hex_digit(text[2 + 2 * i]) : 0;
        const int low = is_hex ? hex_digit(text[3 + 2 * i]) : (uint8_t)text[i];
        if (high < 0 || low < 0) {
            return sj_policy_fail(reader, false, "behind 0x, digits 0 to 9 and a to f are needed");
        }
        change->data[i] = (uint8_t)(high << 4 | low);
    }
    change->data_bytes = (uint32_t)bytes;
    return SJ_OK;
}

/* Parses two marks of the program: the rule is active from the first to the second. */
static sj_status read_between(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_value_change *change = target;
    if (json_array_size(value) != 2) {
        return sj_policy_fail(reader, false, "a list of two marks is needed");
    }
    SJ_TRY(sj_policy_text(reader, json_array_get(value, 0), 1, change->begin_mark,
                          sizeof(change->begin_mark)));
    return sj_policy_text(reader, json_array_get(value, 1), 1, change->end_mark,
                          sizeof(change->end_mark));
}

/* Checks that a rule changes something that can be changed at its time: arguments at the entry, the
 * result at the exit. */
static sj_status check_occasion(sj_policy_reader *reader, const sj_value_rule *rule)
{
    const bool at_exit = sj_value_position(rule->descriptor) == SJ_VALUE_RESULT;
    const bool of_result = sj_value_position(rule->change.target) == SJ_VALUE_RESULT;
    const uint32_t kind = sj_value_kind_of(rule->descriptor);
    if (rule->own.comparison != SJ_VALUE_ALWAYS &&
        (sj_value_is_real(kind) || sj_value_is_text(kind))) {
        return sj_policy_fail(reader, false,
                              "calls are changed under conditions on whole numbers only");
    }
    if (rule->change.action >= SJ_CHANGE_RETURN && rule->change.action != SJ_CHANGE_WRITE &&
        at_exit) {
        return sj_policy_fail(reader, false,
                              "\"%s\" needs an argument: at its exit a call has run; \"set\" "
                              "changes its result",
                              rule->change.action == SJ_CHANGE_RETURN ? "return" : "throw");
    }
    if ((rule->change.action == SJ_CHANGE_SET || rule->change.action == SJ_CHANGE_WRITE) &&
        at_exit != of_result) {
        return sj_policy_fail(reader, false,
                              "an argument is set at the entry, a result at the exit");
    }
    if (rule->change.action == SJ_CHANGE_WRITE &&
        (sj_value_is_real(sj_value_kind_of(rule->change.target)))) {
        return sj_policy_fail(reader, false, "a number with a point leads to no memory");
    }
    return SJ_OK;
}

static const sj_policy_key keys[] = {
    {"argument", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_change, target),
     .parse = sj_policy_read_register},
    {"as", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_change, target), .parse = read_as},
    {"set", SJ_KEY_CUSTOM, .parse = NULL},
    {"return", SJ_KEY_CUSTOM, .parse = NULL},
    {"errno", SJ_KEY_NUMBER, SJ_MEMBER(sj_value_change, error), .least = 1, .most = ERROR_MAX},
    {"delay", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_change, delay_ns), .parse = read_delay},
    {"from", SJ_KEY_NUMBER, SJ_MEMBER(sj_value_change, from), .least = 1, .most = INT64_MAX},
    {"times", SJ_KEY_NUMBER, SJ_MEMBER(sj_value_change, times), .least = 1, .most = INT64_MAX},
    {"one_in", SJ_KEY_NUMBER, SJ_MEMBER(sj_value_change, one_in), .least = 1, .most = INT64_MAX},
    {"throw", SJ_KEY_CUSTOM, SJ_MEMBER(sj_value_change, thrown), .parse = read_throw},
    {"for", SJ_KEY_TIME, SJ_MEMBER(sj_value_change, lasts_ns), .least = 1},
    {"write", SJ_KEY_CUSTOM, .parse = read_write},
    {"between", SJ_KEY_CUSTOM, .parse = read_between}};

/* Parses the value that is set or returned, after its kind. */
static sj_status read_value(sj_policy_reader *reader, sj_value_change *change, json_t *object,
                            const char *key)
{
    sj_policy_enter(reader, key, 0);
    SJ_TRY(read_bits(reader, change, json_object_get(object, key)));
    sj_policy_leave(reader);
    return SJ_OK;
}

sj_status sj_policy_read_change(sj_policy_reader *reader, json_t *value)
{
    sj_value_rules *rules = reader->policy->selection.values;
    sj_value_rule *rule = &rules->items[rules->count];
    rule->changes = true;
    SJ_TRY(sj_policy_object(reader, value, &rule->change, SJ_KEY_LIST(keys)));
    const bool sets = json_object_get(value, "set") != NULL;
    const bool returns = json_object_get(value, "return") != NULL;
    const bool throws = rule->change.thrown[0] != '\0';
    const bool writes = rule->change.data_bytes != 0;
    if (sets + returns + throws + writes > 1) {
        return sj_policy_fail(reader, false, "either \"set\", \"return\", \"throw\" or \"write\"");
    }
    if (!sets && !returns && !throws && !writes && rule->change.error == 0 &&
        rule->change.delay_ns == 0) {
        return sj_policy_fail(
            reader, false,
            "\"set\", \"return\", \"throw\", \"write\", \"errno\" or \"delay\" is "
            "needed");
    }
    if (sj_value_kind_of(rule->change.target) == 0) {
        if (sj_value_is_text(sj_value_kind_of(rule->descriptor)) && (sets || returns)) {
            return sj_policy_fail(reader, false, "\"as\" is needed: texts cannot be set");
        }
        rule->change.target |= sj_value_descriptor(0, sj_value_kind_of(rule->descriptor));
    }
    if ((sets || writes) && sj_value_position(rule->change.target) == 0) {
        rule->change.target |= (uint8_t)sj_value_position(rule->descriptor);
    }
    rule->change.action = sets      ? SJ_CHANGE_SET
                          : returns ? SJ_CHANGE_RETURN
                          : throws  ? SJ_CHANGE_THROW
                          : writes  ? SJ_CHANGE_WRITE
                                    : SJ_CHANGE_NOTHING;
    if (returns && sj_value_position(rule->change.target) != SJ_VALUE_RESULT) {
        return sj_policy_fail(reader, false, "\"return\" has no \"argument\"");
    }
    SJ_TRY(check_occasion(reader, rule));
    return sets || returns ? read_value(reader, &rule->change, value, sets ? "set" : "return")
                           : SJ_OK;
}
