#include "agent/session/redacted_frames.h"

#include "agent/policy/redaction.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static char *borrow(const char *text)
{
    return (char *)(uintptr_t)text;
}

const char *sj_redacted_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    return name[0] != '\0' || path[0] == '\0' ? name : SJ_REDACTED_TEXT;
}

void sj_redacted_text(const char *text, char *copy)
{
    const char *last = strrchr(text, '/');
    const char *first = text;
    while (*first != '\0' &&
           (*first != '/' || (first != text && strchr(" \t\n'\"`(=:,;[<", first[-1]) == NULL))) {
        first++;
    }
    const size_t kept = (size_t)(first - text);
    memcpy(copy, text, kept);
    copy[kept] = '\0';
    if (*first != '\0') {
        memcpy(copy + kept, last + 1, strlen(last)); /* copies the NUL, too */
    }
}

/* Returns a copy of `string` without directories, or NULL if out of memory. */
static json_t *redact_string(const json_t *string)
{
    const size_t bytes = json_string_length(string);
    char *copy = malloc(bytes + 1);
    if (copy == NULL) {
        return NULL;
    }
    sj_redacted_text(json_string_value(string), copy);
    json_t *made = json_string(copy);
    free(copy);
    return made;
}

static bool redact_json(json_t *value);

static bool redact_array(json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *item = json_array_get(array, i);
        if (json_is_string(item) ? json_array_set_new(array, i, redact_string(item)) != 0
                                 : !redact_json(item)) {
            return false;
        }
    }
    return true;
}

/* Removes the directories from all strings in an array or object. Returns false if out of memory.
 * jansson limits the nesting of parsed values, so the recursion is bounded. */
static bool redact_json(json_t *value)
{
    const char *key;
    json_t *item;
    if (json_is_array(value)) {
        return redact_array(value);
    }
    json_object_foreach(value, key, item)
    {
        if (json_is_string(item) ? json_object_set_new(value, key, redact_string(item)) != 0
                                 : !redact_json(item)) {
            return false;
        }
    }
    return true;
}

sj_status sj_redacted_json(const char *json, size_t bytes, char **copy)
{
    json_t *root = json_loadb(json, bytes, 0, NULL);
    if (root == NULL) {
        return SJ_EINVAL;
    }
    *copy = redact_json(root) ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return *copy != NULL ? SJ_OK : SJ_ENOMEM;
}

static void redact_process(Sojourn__Process *process, bool has_paths)
{
    process->command = process->command[0] != '\0' ? borrow(SJ_REDACTED_TEXT) : process->command;
    if (!has_paths) {
        process->executable = borrow(sj_redacted_path(process->executable));
    }
}

static sj_status redact_stack(sj_redacted_message *redacted)
{
    Sojourn__Stack *stack = &redacted->as.stack;
    redacted->paths = calloc(stack->n_path + 1, sizeof(*redacted->paths));
    if (redacted->paths == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < stack->n_path; i++) {
        redacted->paths[i] = borrow(sj_redacted_path(stack->path[i]));
    }
    stack->path = redacted->paths;
    return SJ_OK;
}

/* Removes the directories from `not_applied`, because the recorder's messages in it may name
 * files. */
static sj_status redact_policy(sj_redacted_message *redacted)
{
    Sojourn__Policy *policy = &redacted->as.policy;
    if (policy->not_applied[0] == '\0') {
        return SJ_OK;
    }
    SJ_TRY(sj_redacted_json(policy->not_applied, strlen(policy->not_applied), &redacted->text));
    policy->not_applied = redacted->text;
    return SJ_OK;
}

static sj_status redact(sj_redacted_message *redacted, unsigned bits, sj_frame_type type)
{
    const bool has_paths = (bits & SJ_REDACT_PATHS) == 0;
    switch (type) {
    case SJ_FRAME_SESSION:
        redacted->as.session.command = borrow(SJ_REDACTED_TEXT);
        return SJ_OK;
    case SJ_FRAME_PROCESS:
        redact_process(&redacted->as.process, has_paths);
        return SJ_OK;
    case SJ_FRAME_MODULE:
        redacted->as.module.path = has_paths ? redacted->as.module.path
                                             : borrow(sj_redacted_path(redacted->as.module.path));
        return SJ_OK;
    case SJ_FRAME_STACK:
        return has_paths ? SJ_OK : redact_stack(redacted);
    default: /* SJ_FRAME_POLICY */
        return has_paths ? SJ_OK : redact_policy(redacted);
    }
}

/* Returns the size of the message of a frame type that may have texts to redact. Returns 0 for all
 * other frame types. */
static size_t size_of(sj_frame_type type)
{
    switch (type) {
    case SJ_FRAME_SESSION:
        return sizeof(Sojourn__Session);
    case SJ_FRAME_PROCESS:
        return sizeof(Sojourn__Process);
    case SJ_FRAME_MODULE:
        return sizeof(Sojourn__Module);
    case SJ_FRAME_STACK:
        return sizeof(Sojourn__Stack);
    case SJ_FRAME_POLICY:
        return sizeof(Sojourn__Policy);
    default:
        return 0;
    }
}

sj_status sj_redacted_message_make(sj_redacted_message *redacted, unsigned bits, sj_frame_type type,
                                   const ProtobufCMessage *message, const ProtobufCMessage **sent)
{
    const size_t size = bits != 0 ? size_of(type) : 0;
    *sent = message;
    redacted->paths = NULL;
    redacted->text = NULL;
    if (size == 0) {
        return SJ_OK;
    }
    memcpy(&redacted->as, message, size);
    *sent = (const ProtobufCMessage *)&redacted->as;
    return redact(redacted, bits, type);
}

void sj_redacted_message_deinit(sj_redacted_message *redacted)
{
    free(redacted->paths);
    free(redacted->text);
}
