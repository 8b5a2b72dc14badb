#include "collector-server/fleet/command_kinds.h"

#include "agent/policy/policy.h"
#include "agent/policy/suggest.h"

#include <stdlib.h>
#include <string.h>

enum { MINUTE_MS = 60000, HOUR_MS = 60 * MINUTE_MS, KINDS_MAX = 32, WORDS_MAX = 1024 };

/* Fields that describe a program, and fields of any recording. */
#define PROGRAM_FIELDS                                                                             \
    {"app", SJ_FIELD_TEXT, false}, {"command", SJ_FIELD_WORDS, false},                             \
        {"directory", SJ_FIELD_PATH, false}, {"environment", SJ_FIELD_MAP, false},                 \
    {                                                                                              \
        "prepare", SJ_FIELD_COMMANDS, false                                                        \
    }

#define RECORDING_FIELDS                                                                           \
    {"name", SJ_FIELD_TEXT, false}, {"policy", SJ_FIELD_POLICY, false},                            \
        {"libs", SJ_FIELD_FLAG, false}, {"modules", SJ_FIELD_TEXTS, false},                        \
        {"functions", SJ_FIELD_TEXTS, false}, {"exclude", SJ_FIELD_TEXTS, false},                  \
    {                                                                                              \
        "max_bytes", SJ_FIELD_NUMBER, false                                                        \
    }

const sj_command_kind sj_command_kinds[] = {
    {.name = "status", .summary = "what it records and holds", .timeout_ms = MINUTE_MS},
    {.name = "apps", .summary = "its catalogue of apps", .timeout_ms = MINUTE_MS},
    {.name = "ps", .summary = "its processes", .timeout_ms = MINUTE_MS},
    {.name = "sessions", .summary = "its undelivered sessions", .timeout_ms = MINUTE_MS},
    {.name = "doctor", .summary = "what could keep it from working", .timeout_ms = MINUTE_MS},
    {.name = "launch",
     .summary = "start an app of the catalogue, or a program, under trace",
     .timeout_ms = MINUTE_MS,
     .fields = {PROGRAM_FIELDS, {"prepared", SJ_FIELD_FLAG, false}, RECORDING_FIELDS}},
    {.name = "prepare",
     .summary = "do what an app needs before its start, and report what it runs on",
     .timeout_ms = MINUTE_MS,
     .fields = {PROGRAM_FIELDS}},
    {.name = "record",
     .summary = "prepare an app, start and record it, and bring its function.txt here or to a "
                "directory of the device",
     .place = SJ_COMMAND_IN_COLLECTOR,
     .timeout_ms = HOUR_MS,
     .fields = {PROGRAM_FIELDS,
                RECORDING_FIELDS,
                {"format", SJ_FIELD_TEXT, false},
                {"to", SJ_FIELD_PATH, false}}},
    {.name = "attach",
     .summary = "record a running process",
     .timeout_ms = MINUTE_MS,
     .fields = {{"pid", SJ_FIELD_NUMBER, true},
                {"duration_ms", SJ_FIELD_NUMBER, false},
                RECORDING_FIELDS}},
    {.name = "detach",
     .summary = "detach from a process",
     .timeout_ms = MINUTE_MS,
     .fields = {{"pid", SJ_FIELD_NUMBER, true}}},
    {.name = "shrink",
     .summary = "halve the memory that the freed blocks of a watched process keep",
     .timeout_ms = MINUTE_MS,
     .fields = {{"pid", SJ_FIELD_NUMBER, true}}},
    {.name = "stop",
     .summary = "end a recording, or all",
     .timeout_ms = MINUTE_MS,
     .fields = {{"session", SJ_FIELD_TEXT, false}}},
    {.name = "mark",
     .summary = "mark the beginning or the end of a phase",
     .timeout_ms = MINUTE_MS,
     .fields = {{"mark", SJ_FIELD_TEXT, true},
                {"end", SJ_FIELD_FLAG, false},
                {"session", SJ_FIELD_TEXT, false}}},
    {.name = "dump",
     .summary =
         "set off a trigger \"command\" of the policy: in flight mode, ship the last seconds",
     .timeout_ms = MINUTE_MS,
     .fields = {{"trigger", SJ_FIELD_TEXT, false}, {"session", SJ_FIELD_TEXT, false}}},
    {.name = "export",
     .summary = "write a session as function.txt, report.txt, ... here or on the device",
     .place = SJ_COMMAND_IN_COLLECTOR,
     .timeout_ms = 10 * MINUTE_MS,
     .fields = {{"session", SJ_FIELD_TEXT, true},
                {"format", SJ_FIELD_TEXT, false},
                {"directory", SJ_FIELD_PATH, false}}},
    {.name = "policy",
     .summary = "set the policy of devices, or of one app on them; without one: end it",
     .place = SJ_COMMAND_AT_ONCE,
     .timeout_ms = HOUR_MS,
     .fields = {{"policy", SJ_FIELD_POLICY, false}, {"app", SJ_FIELD_TEXT, false}}},
    {.name = "tags",
     .summary = "set tags of devices; null removes one",
     .place = SJ_COMMAND_AT_ONCE,
     .timeout_ms = MINUTE_MS,
     .fields = {{"tags", SJ_FIELD_TAGS, true}}},
    {.name = "quota",
     .summary = "set how much of a device is stored in a day; without arguments: the default",
     .place = SJ_COMMAND_AT_ONCE,
     .timeout_ms = MINUTE_MS,
     .fields = {{"bytes", SJ_FIELD_NUMBER, false},
                {"sessions", SJ_FIELD_NUMBER, false},
                {"unlimited", SJ_FIELD_FLAG, false}}},
    {.name = "policies",
     .summary = "fetch the policies of this device",
     .place = SJ_COMMAND_INTERNAL,
     .timeout_ms = HOUR_MS},
    {.name = "write",
     .summary = "write a file that the collector has made",
     .place = SJ_COMMAND_INTERNAL,
     .timeout_ms = HOUR_MS},
    {.name = NULL},
};

const sj_command_kind *sj_command_kind_find(const char *name, sj_error *error)
{
    const char *names[KINDS_MAX];
    size_t count = 0;
    for (const sj_command_kind *kind = sj_command_kinds; kind->name != NULL; kind++) {
        if (kind->place == SJ_COMMAND_INTERNAL) {
            continue;
        }
        if (strcmp(kind->name, name) == 0) {
            return kind;
        }
        names[count++] = kind->name;
    }
    const char *nearest = sj_suggest(name, names, count);
    sj_fail(error, SJ_EUNSUPPORTED, "unknown command \"%.40s\"%s%s%s", name,
            nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
            nearest != NULL ? "\"?" : "");
    return NULL;
}

static bool is_list(const json_t *value, size_t minimum, bool (*is_item)(const json_t *item))
{
    size_t index;
    json_t *item;
    if (!json_is_array(value) || json_array_size(value) < minimum ||
        json_array_size(value) > WORDS_MAX) {
        return false;
    }
    json_array_foreach((json_t *)(uintptr_t)value, index, item)
    {
        if (!is_item(item)) {
            return false;
        }
    }
    return true;
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_words(const json_t *value)
{
    return is_list(value, 1, is_text);
}

static bool is_tag_key(const char *key)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    return key[0] != '\0' && strlen(key) <= 64 && key[strspn(key, letters)] == '\0';
}

static bool is_map(const json_t *value, bool is_of_tags)
{
    const char *key;
    json_t *item;
    if (!json_is_object(value)) {
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        const bool is_sound = is_of_tags ? is_tag_key(key) && (json_is_null(item) || is_text(item))
                                         : key[0] != '\0' && is_text(item);
        if (!is_sound) {
            return false;
        }
    }
    return true;
}

/* Checks a policy as a device would: the name of a shipped policy, or a whole document. */
static sj_status check_policy(const json_t *value, sj_error *error)
{
    sj_policy policy;
    if (json_is_string(value)) {
        return sj_policy_preset(json_string_value(value)) != NULL
                   ? SJ_OK
                   : sj_fail(error, SJ_EINVAL,
                             "there is no shipped policy \"%.40s\"; `sojourn policy list` names "
                             "them",
                             json_string_value(value));
    }
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY);
    if (text == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = sj_policy_parse(text, strlen(text), "policy", &policy, error);
    free(text);
    if (status == SJ_OK) {
        sj_policy_free(&policy);
    }
    return status;
}

static const char *wanted_text(sj_field_type type)
{
    static const char *const texts[] = {
        [SJ_FIELD_TEXT] = "a text of 1 to 4000 bytes",
        [SJ_FIELD_PATH] = "an absolute path",
        [SJ_FIELD_TEXTS] = "a list of texts",
        [SJ_FIELD_WORDS] = "a list of words",
        [SJ_FIELD_COMMANDS] = "a list of commands, each a list of words",
        [SJ_FIELD_MAP] = "an object of texts",
        [SJ_FIELD_TAGS] = "an object of texts, or nulls, whose keys are letters, digits, . _ -",
        [SJ_FIELD_NUMBER] = "a whole number from 1",
        [SJ_FIELD_FLAG] = "true or false",
        [SJ_FIELD_POLICY] = "a policy"};
    return texts[type];
}

static bool is_of_type(sj_field_type type, const json_t *value)
{
    switch (type) {
    case SJ_FIELD_TEXT:
        return is_text(value) && json_string_length(value) >= 1 &&
               json_string_length(value) <= 4000;
    case SJ_FIELD_PATH:
        return is_text(value) && json_string_value(value)[0] == '/' &&
               json_string_length(value) <= 4000;
    case SJ_FIELD_TEXTS:
        return is_list(value, 0, is_text);
    case SJ_FIELD_WORDS:
        return is_words(value);
    case SJ_FIELD_COMMANDS:
        return is_list(value, 0, is_words);
    case SJ_FIELD_MAP:
    case SJ_FIELD_TAGS:
        return is_map(value, type == SJ_FIELD_TAGS);
    case SJ_FIELD_NUMBER:
        return json_is_integer(value) && json_integer_value(value) >= 1;
    case SJ_FIELD_FLAG:
        return json_is_boolean(value);
    case SJ_FIELD_POLICY:
        return true; /* check_policy checks it */
    }
    return false;
}

static const sj_command_field *find_field(const sj_command_kind *kind, const char *name,
                                          sj_error *error)
{
    const char *names[SJ_COMMAND_FIELDS];
    size_t count = 0;
    for (; count < SJ_COMMAND_FIELDS && kind->fields[count].name != NULL; count++) {
        if (strcmp(kind->fields[count].name, name) == 0) {
            return &kind->fields[count];
        }
        names[count] = kind->fields[count].name;
    }
    const char *nearest = sj_suggest(name, names, count);
    sj_fail(error, SJ_EINVAL, "%s: there is no argument \"%.40s\"%s%s%s", kind->name, name,
            nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
            nearest != NULL ? "\"?" : "");
    return NULL;
}

static bool has_field(const sj_command_kind *kind, const char *name)
{
    size_t i = 0;
    while (i < SJ_COMMAND_FIELDS && kind->fields[i].name != NULL &&
           strcmp(kind->fields[i].name, name) != 0) {
        i++;
    }
    return i < SJ_COMMAND_FIELDS && kind->fields[i].name != NULL;
}

static sj_status check_required(const sj_command_kind *kind, const json_t *arguments,
                                sj_error *error)
{
    for (size_t i = 0; i < SJ_COMMAND_FIELDS && kind->fields[i].name != NULL; i++) {
        if (kind->fields[i].is_required &&
            json_object_get(arguments, kind->fields[i].name) == NULL) {
            return sj_fail(error, SJ_EINVAL, "%s: the argument \"%s\" is missing", kind->name,
                           kind->fields[i].name);
        }
    }
    const bool starts = has_field(kind, "command");
    if (starts && (json_object_get(arguments, "app") == NULL) ==
                      (json_object_get(arguments, "command") == NULL)) {
        return sj_fail(error, SJ_EINVAL, "%s: name either an \"app\" or a \"command\"", kind->name);
    }
    return SJ_OK;
}

sj_status sj_command_kind_check(const sj_command_kind *kind, const json_t *arguments,
                                sj_error *error)
{
    const char *name;
    json_t *value;
    if (!json_is_object(arguments)) {
        return sj_fail(error, SJ_EINVAL, "%s: the arguments have to be a JSON object", kind->name);
    }
    json_object_foreach((json_t *)(uintptr_t)arguments, name, value)
    {
        const sj_command_field *field = find_field(kind, name, error);
        if (field == NULL) {
            return SJ_EINVAL;
        }
        if (!is_of_type(field->type, value)) {
            return sj_fail(error, SJ_EINVAL, "%s: \"%s\" has to be %s", kind->name, name,
                           wanted_text(field->type));
        }
        if (field->type == SJ_FIELD_POLICY) {
            SJ_TRY(check_policy(value, error));
        }
    }
    return check_required(kind, arguments, error);
}
