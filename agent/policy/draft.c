#include "agent/policy/draft.h"

#include "agent/policy/prototypes.h"
#include "agent/policy/value_signature.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOCUMENT "policy" /* names the document in errors about options */

struct sj_policy_draft {
    json_t *document;
    json_t *loaded;     /* the loaded document; NULL: none */
    json_t *prototypes; /* signatures by function name; NULL: none */
    char *text;         /* text of the loaded document; NULL: none */
    size_t size;
    char name[PATH_MAX];
};

sj_status sj_policy_draft_new(sj_policy_draft **draft, sj_error *error)
{
    sj_policy_draft *made = calloc(1, sizeof(*made));
    if (made != NULL) {
        made->document = json_pack("{s:i}", "policy", SJ_POLICY_FORMAT);
    }
    if (made == NULL || made->document == NULL) {
        sj_policy_draft_free(made);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    *draft = made;
    return SJ_OK;
}

void sj_policy_draft_free(sj_policy_draft *draft)
{
    if (draft != NULL) {
        json_decref(draft->document);
        json_decref(draft->loaded);
        json_decref(draft->prototypes);
        free(draft->text);
        free(draft);
    }
}

/* Writes the names of the shipped policies. */
static void list_presets(char *text, size_t capacity)
{
    size_t size = (size_t)snprintf(text, capacity, " (shipped policies:");
    for (size_t i = 0; sj_policy_presets[i] != NULL && size < capacity; i++) {
        size += (size_t)snprintf(text + size, capacity - size, "%s %s", i == 0 ? "" : ",",
                                 sj_policy_presets[i]);
    }
    if (size + 1 < capacity) {
        snprintf(text + size, capacity - size, ")");
    }
}

static sj_status read_file(const char *name, const char *hint, char *text, size_t capacity,
                           size_t *size, sj_error *error)
{
    const int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return sj_fail(error, SJ_ENOTFOUND, "%s: %s%s", name, strerror(errno), hint);
    }
    *size = 0;
    ssize_t got = 1;
    while (got > 0 && *size < capacity) {
        got = read(fd, text + *size, capacity - *size);
        *size += got > 0 ? (size_t)got : 0;
    }
    const int problem = got < 0 ? errno : 0;
    close(fd);
    return problem == 0 ? SJ_OK : sj_fail(error, SJ_EIO, "%s: %s", name, strerror(problem));
}

sj_status sj_policy_draft_parse(sj_policy_draft *draft, const char *text, size_t size,
                                const char *name, sj_error *error)
{
    sj_policy policy;
    SJ_TRY(sj_policy_parse(text, size, name, &policy, error));
    sj_policy_free(&policy);
    json_t *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    json_t *loaded = json_deep_copy(document);
    char *copy = strndup(text, size);
    if (document == NULL || loaded == NULL || copy == NULL) {
        json_decref(document);
        json_decref(loaded);
        free(copy);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    json_decref(draft->document);
    json_decref(draft->loaded);
    free(draft->text);
    draft->document = document;
    draft->loaded = loaded;
    draft->text = copy;
    draft->size = size;
    snprintf(draft->name, sizeof(draft->name), "%s", name);
    return SJ_OK;
}

sj_status sj_policy_draft_load(sj_policy_draft *draft, const char *name, sj_error *error)
{
    const char *preset = sj_policy_preset(name);
    if (preset != NULL) {
        return sj_policy_draft_parse(draft, preset, strlen(preset), name, error);
    }
    char *text = malloc(SJ_POLICY_MAX_BYTES + 1);
    size_t size = 0;
    if (text == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    char hint[160];
    list_presets(hint, sizeof(hint));
    sj_status status = read_file(name, hint, text, SJ_POLICY_MAX_BYTES + 1, &size, error);
    if (status == SJ_OK) {
        status = sj_policy_draft_parse(draft, text, size, name, error);
    }
    free(text);
    return status;
}

/* Returns the member `part` of an object. Makes it an object if it is missing or true. */
static json_t *find_part(json_t *parent, const char *part)
{
    json_t *found = json_object_get(parent, part);
    if (found != NULL && !json_is_true(found)) {
        return found;
    }
    json_t *made = json_object();
    return json_object_set_new(parent, part, made) == 0 ? made : NULL;
}

/* Returns the object that holds the last part of `key`. */
static json_t *find_parent(sj_policy_draft *draft, const char *key, const char **last)
{
    json_t *parent = draft->document;
    const char *dot = strchr(key, '.');
    for (; parent != NULL && dot != NULL; key = dot + 1, dot = strchr(key, '.')) {
        char part[64] = "";
        snprintf(part, sizeof(part), "%.*s", (int)(dot - key), key);
        parent = find_part(parent, part);
    }
    *last = key;
    return parent;
}

static sj_status set_value(sj_policy_draft *draft, const char *key, json_t *value)
{
    const char *last;
    json_t *parent = find_parent(draft, key, &last);
    return parent != NULL && json_object_set_new(parent, last, value) == 0 ? SJ_OK : SJ_EINVAL;
}

sj_status sj_policy_draft_text(sj_policy_draft *draft, const char *key, const char *value)
{
    return set_value(draft, key, json_string(value));
}

sj_status sj_policy_draft_number(sj_policy_draft *draft, const char *key, uint64_t value)
{
    return set_value(draft, key, json_integer((json_int_t)value));
}

sj_status sj_policy_draft_true(sj_policy_draft *draft, const char *key)
{
    return set_value(draft, key, json_true());
}

sj_status sj_policy_draft_false(sj_policy_draft *draft, const char *key)
{
    return set_value(draft, key, json_false());
}

static sj_status append_value(sj_policy_draft *draft, const char *key, json_t *value)
{
    const char *last;
    json_t *parent = find_parent(draft, key, &last);
    json_t *list = json_object_get(parent, last);
    if (list == NULL) {
        list = json_array();
        if (json_object_set_new(parent, last, list) != 0) {
            json_decref(value);
            return SJ_EINVAL;
        }
    }
    return json_array_append_new(list, value) == 0 ? SJ_OK : SJ_EINVAL;
}

sj_status sj_policy_draft_append(sj_policy_draft *draft, const char *key, const char *value)
{
    return append_value(draft, key, json_string(value));
}

/* True for "FUNCTION(NUMBER:KIND)" and "FUNCTION(result:KIND)"; `open` is the last bracket. */
static bool is_numbered(const char *open)
{
    const char *after = open + 1;
    const bool is_digit = *after >= '0' && *after <= '9';
    return is_digit || (strncmp(after, "result:", 7) == 0 && strpbrk(after, ",>") == NULL);
}

static sj_status append_signature(sj_policy_draft *draft, const char *text, const char *open,
                                  sj_error *error)
{
    sj_signature signature;
    sj_error reason = {0};
    if (sj_signature_parse(open, SJ_CONVENTION_NATIVE, sj_signature_is_method(text), &signature,
                           &reason) != SJ_OK) {
        return sj_fail(error, SJ_EINVAL, "--value %.200s: %s", text, reason.text);
    }
    json_t *rule =
        json_pack("{s: s%, s: s}", "function", text, (size_t)(open - text), "signature", open);
    return rule != NULL ? append_value(draft, "values", rule)
                        : sj_fail(error, SJ_EINVAL, "--value %.200s is not UTF-8 text", text);
}

sj_status sj_policy_draft_cpu(sj_policy_draft *draft, const char *function, sj_error *error)
{
    json_t *rule = json_pack("{s: s, s: b}", "function", function, "cpu", 1);
    return rule != NULL
               ? append_value(draft, "values", rule)
               : sj_fail(error, SJ_EINVAL, "--cpu-time %.200s is not UTF-8 text", function);
}

sj_status sj_policy_draft_memory(sj_policy_draft *draft, const char *function, sj_error *error)
{
    json_t *rule = json_pack("{s: s, s: b}", "function", function, "memory", 1);
    return rule != NULL ? append_value(draft, "values", rule)
                        : sj_fail(error, SJ_EINVAL, "--memory %.200s is not UTF-8 text", function);
}

sj_status sj_policy_draft_value(sj_policy_draft *draft, const char *text, sj_error *error)
{
    static const char result[] = "result";
    const char *open = strrchr(text, '(');
    const char *colon = open != NULL ? strchr(open, ':') : NULL;
    const size_t bytes = strlen(text);
    char *end = NULL;
    if (open != NULL && open != text && !is_numbered(open)) {
        return append_signature(draft, text, open, error);
    }
    if (bytes != 0 && open == NULL) { /* debug data describe its values */
        json_t *alone = json_pack("{s: s}", "function", text);
        return alone != NULL ? append_value(draft, "values", alone)
                             : sj_fail(error, SJ_EINVAL, "--value %.200s is not UTF-8 text", text);
    }
    if (colon == NULL || open == text || text[bytes - 1] != ')' || colon == text + bytes - 2) {
        return sj_fail(error, SJ_EINVAL,
                       "--value needs FUNCTION, FUNCTION(NAME:KIND, ...) -> KIND, "
                       "FUNCTION(NUMBER:KIND) or FUNCTION(result:KIND), not \"%.200s\"",
                       text);
    }
    const bool is_result = (size_t)(colon - open - 1) == sizeof(result) - 1 &&
                           memcmp(open + 1, result, sizeof(result) - 1) == 0;
    const unsigned long number = is_result ? 0 : strtoul(open + 1, &end, 10);
    if (!is_result && (end != colon || number == 0 || number > SJ_VALUE_LAST_REGISTER)) {
        return sj_fail(
            error, SJ_EINVAL,
            "--value %.200s: an argument's number from 1 to %d, or \"result\", is needed "
            "before the colon",
            text, SJ_VALUE_LAST_REGISTER);
    }
    json_t *rule = json_pack("{s: s%, s: s%}", "function", text, (size_t)(open - text), "as",
                             colon + 1, (size_t)(text + bytes - 1 - (colon + 1)));
    if (rule == NULL ||
        json_object_set_new(rule, is_result ? result : "argument",
                            is_result ? json_true() : json_integer((json_int_t)number)) != 0) {
        json_decref(rule);
        return sj_fail(error, SJ_EINVAL, "--value %.200s is not UTF-8 text", text);
    }
    return append_value(draft, "values", rule);
}

void sj_policy_draft_origin(const sj_policy_draft *draft, const sj_json_step *steps, size_t count,
                            char *origin, size_t capacity)
{
    const json_t *value = draft->loaded;
    for (size_t i = 0; i < count && value != NULL; i++) {
        value = steps[i].key != NULL ? json_object_get(value, steps[i].key)
                                     : json_array_get(value, steps[i].index);
    }
    if (value == NULL) {
        snprintf(origin, capacity, "the command line");
        return;
    }
    const sj_json_place place = sj_json_find(draft->text, draft->size, steps, count, false);
    snprintf(origin, capacity, "%s:%u:%u", draft->name, place.line, place.column);
}

/* Replaces the place in an error by the line at that place, up to its opening bracket. The user has
 * not seen the generated document. */
static void name_line(const char *text, sj_error *error)
{
    char said[SJ_ERROR_TEXT_BYTES];
    unsigned long line = 0;
    int used = 0;
    if (error == NULL || sscanf(error->text, DOCUMENT ":%lu:%*u: %n", &line, &used) != 1 ||
        used == 0) {
        return;
    }
    while (line > 1 && *text != '\0') {
        line -= *text++ == '\n';
    }
    text += strspn(text, " ");
    size_t shown = strcspn(text, "\n");
    while (shown > 0 && strchr(",:[{ ", text[shown - 1]) != NULL) {
        shown--;
    }
    memcpy(said, error->text, sizeof(said));
    snprintf(error->text, sizeof(error->text), "%.*s%s%.300s", shown < 150 ? (int)shown : 150, text,
             shown > 0 ? ": " : "", said + used);
}

static sj_status add_prototype(void *context, const char *name, const char *signature)
{
    return json_object_set_new(context, name, json_string(signature)) == 0 ? SJ_OK : SJ_ENOMEM;
}

sj_status sj_policy_draft_prototypes(sj_policy_draft *draft, const char *name, sj_error *error)
{
    if (draft->prototypes == NULL) {
        draft->prototypes = json_object();
    }
    char *text = malloc(SJ_PROTOTYPES_BYTES + 1);
    size_t size = 0;
    if (text == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (strcmp(name, "libc") == 0) {
        free(text);
        return sj_prototypes_read(sj_prototypes_libc, strlen(sj_prototypes_libc), name,
                                  draft->prototypes, add_prototype, error);
    }
    sj_status status = read_file(name, "", text, SJ_PROTOTYPES_BYTES + 1, &size, error);
    if (status == SJ_OK && size > SJ_PROTOTYPES_BYTES) {
        status =
            sj_fail(error, SJ_ELIMIT, "%.200s has more than %d bytes", name, SJ_PROTOTYPES_BYTES);
    }
    if (status == SJ_OK) {
        status = sj_prototypes_read(text, size, name, draft->prototypes, add_prototype, error);
    }
    free(text);
    return status;
}

/* Returns the function of "library!function". */
static const char *bare_name(const char *function)
{
    const char *mark = strrchr(function, '!');
    return mark != NULL ? mark + 1 : function;
}

/* Adds the signature of the prototype to rules that name only a function. */
static void use_prototypes(const sj_policy_draft *draft)
{
    json_t *rules = json_object_get(draft->document, "values");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        json_t *rule = json_array_get(rules, i);
        const char *function = json_string_value(json_object_get(rule, "function"));
        const size_t keys = 1U + (json_object_get(rule, "name") != NULL) +
                            (json_object_get(rule, "text_bytes") != NULL);
        json_t *signature = function != NULL && json_object_size(rule) == keys
                                ? json_object_get(draft->prototypes, bare_name(function))
                                : NULL;
        if (signature != NULL) {
            (void)!json_object_set(rule, "signature", signature);
        }
    }
}

sj_status sj_policy_draft_finish(const sj_policy_draft *draft, sj_policy *policy, sj_error *error)
{
    use_prototypes(draft);
    char *text = json_dumps(draft->document, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (text == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = sj_policy_parse(text, strlen(text), DOCUMENT, policy, error);
    if (status != SJ_OK) {
        name_line(text, error);
    }
    free(text);
    return status;
}
