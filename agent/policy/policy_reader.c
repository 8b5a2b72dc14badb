#include "agent/policy/policy_reader.h"

#include "agent/policy/suggest.h"
#include "proto/base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sj_status sj_policy_fail(sj_policy_reader *reader, bool at_key, const char *format, ...)
{
    char message[384];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    const sj_json_place place =
        sj_json_find(reader->text, reader->size, reader->path, reader->depth, at_key);
    return sj_fail(reader->error, SJ_EINVAL, "%.200s:%u:%u: %s", reader->origin, place.line,
                   place.column, message);
}

void sj_policy_enter(sj_policy_reader *reader, const char *key, size_t index)
{
    reader->path[reader->depth++] = (sj_json_step){.key = key, .index = index};
}

void sj_policy_leave(sj_policy_reader *reader)
{
    reader->depth--;
}

/* Suggests the key that was probably meant, or lists all possible keys. */
static sj_status report_unknown_key(sj_policy_reader *reader, const char *key,
                                    const sj_policy_key *known, size_t count)
{
    const char *words[SJ_POLICY_KEYS];
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        words[i] = known[i].name;
        const int written =
            snprintf(list + used, sizeof(list) - used, "%s%s", i != 0 ? ", " : "", known[i].name);
        used += written > 0 && used + (size_t)written < sizeof(list) ? (size_t)written : 0;
    }
    const char *meant = sj_suggest(key, words, count);
    sj_policy_enter(reader, key, 0);
    const sj_status status =
        meant != NULL
            ? sj_policy_fail(reader, true, "unknown key \"%.64s\"; did you mean \"%s\"?", key,
                             meant)
            : sj_policy_fail(reader, true, "unknown key \"%.64s\"; known here: %s", key, list);
    sj_policy_leave(reader);
    return status;
}

sj_status sj_policy_number(sj_policy_reader *reader, json_t *value, uint64_t least, uint64_t most,
                           uint64_t *number)
{
    if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)least ||
        json_integer_value(value) > (json_int_t)most) {
        return sj_policy_fail(reader, false, "a whole number from %llu to %llu is needed",
                              (unsigned long long)least, (unsigned long long)most);
    }
    *number = (uint64_t)json_integer_value(value);
    return SJ_OK;
}

sj_status sj_policy_word(sj_policy_reader *reader, json_t *value, const char *const *words,
                         size_t count, size_t *index)
{
    const char *text = json_string_value(value);
    char list[160] = "";
    for (size_t i = 0; i < count; i++) {
        if (text != NULL && strcmp(text, words[i]) == 0) {
            *index = i;
            return SJ_OK;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s\"%s\"", i != 0 ? ", " : "", words[i]);
    }
    const char *meant = text != NULL ? sj_suggest(text, words, count) : NULL;
    if (meant != NULL) {
        return sj_policy_fail(reader, false, "\"%.64s\" is not known; did you mean \"%s\"?", text,
                              meant);
    }
    return sj_policy_fail(reader, false, "one of %s is needed", list);
}

sj_status sj_policy_time(sj_policy_reader *reader, json_t *value, uint64_t least_ns, uint64_t *ns)
{
    const uint64_t longest_ns = UINT64_C(86400000000000); /* one day */
    const char *text = json_string_value(value);
    if (text == NULL || !sj_duration_parse(text, ns) || *ns < least_ns || *ns > longest_ns) {
        return sj_policy_fail(reader, false,
                              "a time such as \"250us\", \"16ms\", \"2s\" or \"5m\" is needed%s",
                              least_ns > 0 ? ", more than none" : "");
    }
    return SJ_OK;
}

sj_status sj_policy_pattern(sj_policy_reader *reader, json_t *value, sj_pattern *pattern)
{
    sj_error error = {0};
    const char *text = json_string_value(value);
    if (text == NULL) {
        return sj_policy_fail(reader, false, "a pattern (a text) is needed");
    }
    sj_pattern made = {0};
    if (sj_pattern_make(text, &made, &error) != SJ_OK) {
        return sj_policy_fail(reader, false, "%s", error.text);
    }
    sj_pattern_free(pattern);
    *pattern = made;
    return SJ_OK;
}

sj_status sj_policy_patterns(sj_policy_reader *reader, json_t *list, sj_pattern *patterns,
                             size_t capacity, size_t *count)
{
    if (!json_is_array(list)) {
        return sj_policy_fail(reader, false, "a list [ ] of patterns is needed");
    }
    if (json_array_size(list) > capacity) {
        return sj_policy_fail(reader, false, "at most %zu patterns are possible", capacity);
    }
    for (size_t i = 0; i < *count; i++) {
        sj_pattern_free(&patterns[i]);
    }
    *count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        sj_policy_enter(reader, NULL, i);
        SJ_TRY(sj_policy_pattern(reader, json_array_get(list, i), &patterns[i]));
        *count = i + 1;
        sj_policy_leave(reader);
    }
    return SJ_OK;
}

sj_status sj_policy_boolean(sj_policy_reader *reader, json_t *value, bool *is_true)
{
    if (!json_is_boolean(value)) {
        return sj_policy_fail(reader, false, "true or false is needed");
    }
    *is_true = json_is_true(value);
    return SJ_OK;
}

sj_status sj_policy_text(sj_policy_reader *reader, json_t *value, size_t least, char *text,
                         size_t bytes)
{
    const char *given = json_string_value(value);
    const size_t length = given != NULL ? strlen(given) : 0;
    if (given == NULL && bytes == 0) {
        return sj_policy_fail(reader, false, "a text is needed");
    }
    if (given == NULL || length < least || (bytes != 0 && length >= bytes)) {
        return sj_policy_fail(reader, false, "a text of %s%zu bytes is needed",
                              least != 0 ? "1 to " : "at most ", bytes - 1);
    }
    if (bytes != 0) {
        memcpy(text, given, length + 1);
    }
    return SJ_OK;
}

sj_status sj_policy_names(sj_policy_reader *reader, json_t *list, char *names, size_t bytes)
{
    size_t used = 0;
    if (!json_is_array(list)) {
        return sj_policy_fail(reader, false, "a list of patterns is needed");
    }
    memset(names, 0, bytes);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        const size_t added = name != NULL ? strlen(name) + 1 : 0;
        sj_policy_enter(reader, NULL, i);
        if (added < 2) {
            return sj_policy_fail(reader, false, "a pattern of names is needed");
        }
        if (used + added >= bytes) {
            return sj_policy_fail(reader, false, "the patterns have more than %zu characters",
                                  bytes - 2);
        }
        memcpy(names + used, name, added);
        used += added;
        sj_policy_leave(reader);
    }
    return SJ_OK;
}

static sj_status read_size(sj_policy_reader *reader, json_t *value, uint64_t least, uint64_t most,
                           uint64_t *bytes)
{
    const char *text = json_string_value(value);
    if (text == NULL || !sj_size_parse(text, bytes) || *bytes < least || *bytes > most) {
        return sj_policy_fail(reader, false, "an amount such as \"64M\" or \"1G\" is needed");
    }
    return SJ_OK;
}

/* Parses a value that becomes a number. */
static sj_status read_number(sj_policy_reader *reader, const sj_policy_key *key, json_t *value,
                             uint64_t *number)
{
    size_t index = 0;
    bool is_true = false;
    switch (key->kind) {
    case SJ_KEY_TRUE:
        *number = 1;
        return json_is_true(value) ? SJ_OK : sj_policy_fail(reader, false, "only true is possible");
    case SJ_KEY_NUMBER:
        return sj_policy_number(reader, value, key->least, key->most, number);
    case SJ_KEY_WORD:
        SJ_TRY(sj_policy_word(reader, value, key->words + key->least,
                              (size_t)(key->most - key->least), &index));
        *number = key->least + index;
        return SJ_OK;
    case SJ_KEY_TIME:
        return sj_policy_time(reader, value, key->least, number);
    case SJ_KEY_SIZE:
        return read_size(reader, value, key->least, key->most, number);
    default:
        SJ_TRY(sj_policy_boolean(reader, value, &is_true));
        *number = is_true;
        return SJ_OK;
    }
}

static sj_status read_member(sj_policy_reader *reader, const sj_policy_key *key, char *object,
                             json_t *value)
{
    void *target = object + key->offset;
    void *count = object + key->count_offset;
    uint64_t number = 0;
    switch (key->kind) {
    case SJ_KEY_CUSTOM:
        return key->parse != NULL ? key->parse(reader, target, value) : SJ_OK;
    case SJ_KEY_OBJECT:
        return sj_policy_object(reader, value, target, key->keys, key->key_count);
    case SJ_KEY_TEXT:
        return sj_policy_text(reader, value, key->least, target, key->bytes);
    case SJ_KEY_PATTERN:
        return sj_policy_pattern(reader, value, target);
    case SJ_KEY_PATTERNS:
        return sj_policy_patterns(reader, value, target, key->bytes / sizeof(sj_pattern), count);
    case SJ_KEY_NAMES:
        return sj_policy_names(reader, value, target, key->bytes);
    default:
        SJ_TRY(read_number(reader, key, value, &number));
        number /= key->unit != 0 ? key->unit : 1;
        memcpy(target, &number, key->bytes); /* all machines are little-endian */
        return SJ_OK;
    }
}

sj_status sj_policy_object(sj_policy_reader *reader, json_t *value, void *object,
                           const sj_policy_key *known, size_t count)
{
    const char *key;
    json_t *member;
    if (!json_is_object(value)) {
        return sj_policy_fail(reader, false, "an object { } is needed here");
    }
    json_object_foreach(value, key, member)
    {
        const sj_policy_key *found = NULL;
        for (size_t i = 0; i < count; i++) {
            found = strcmp(known[i].name, key) == 0 ? &known[i] : found;
        }
        if (found == NULL) {
            return report_unknown_key(reader, key, known, count);
        }
        sj_policy_enter(reader, found->name, 0);
        SJ_TRY(read_member(reader, found, object, member));
        sj_policy_leave(reader);
    }
    return SJ_OK;
}
