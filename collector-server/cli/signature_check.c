#include "collector-server/cli/signature_check.h"

#include "agent/objfile/function_types.h"
#include "agent/objfile/symbol_file.h"
#include "agent/policy/value_signature.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct checked_rule {
    const char *function;
    const char *text;
    sj_signature signature;
    uint64_t address;
    bool is_found;
} checked_rule;

typedef struct signature_check {
    checked_rule *rules;
    size_t count;
} signature_check;

static sj_status visit_symbol(void *context, uint64_t address, const char *symbol)
{
    signature_check *check = context;
    for (size_t i = 0; i < check->count; i++) {
        if (strcmp(check->rules[i].function, symbol) == 0) {
            check->rules[i].address = address;
            check->rules[i].is_found = true;
        }
    }
    return SJ_OK;
}

/* Stops the reading at the first line: the reader visits symbols before lines. */
static sj_status visit_line(void *context, uint64_t address, const char *file, int line)
{
    (void)context;
    (void)address;
    (void)file;
    (void)line;
    return SJ_EFULL;
}

/* Writes the address of each function that the rules name. Returns false if the file has none. */
static bool find_functions(signature_check *check, const char *binary)
{
    const sj_symbol_visitor visitor = {
        .context = check, .symbol = visit_symbol, .line = visit_line};
    sj_symbol_file *file = NULL;
    bool is_found = false;
    if (check->count == 0 || sj_symbol_file_open(binary, &file, NULL) != SJ_OK) {
        return false;
    }
    const sj_status status = sj_symbol_file_read(file, &visitor);
    sj_symbol_file_close(file);
    for (size_t i = 0; i < check->count; i++) {
        is_found = is_found || check->rules[i].is_found;
    }
    return is_found && (status == SJ_OK || status == SJ_EFULL);
}

/* Returns the name of the parameter at `*at`, and its length. Moves `*at` past the parameter.
 * Returns NULL if the parameter has no name. */
static const char *parse_name(const char **at, size_t *bytes)
{
    const char *start = *at + strspn(*at, " ");
    const char *end = start;
    for (int open = 0; *end != '\0' && (open != 0 || strchr(",)", *end) == NULL); end++) {
        open += (*end == '[') - (*end == ']');
    }
    const char *colon = memchr(start, ':', (size_t)(end - start));
    *bytes = colon != NULL ? strcspn(start, " :") : 0;
    *at = *end == ',' ? end + 1 : end;
    return colon != NULL ? start : NULL;
}

static const sj_typed_value *find_named(const sj_typed_function *typed, const char *name,
                                        size_t bytes)
{
    for (size_t i = 0; i < typed->count; i++) {
        const sj_typed_value *value = &typed->values[i];
        if (value->place != 0 && !value->is_behind && strlen(value->name) == bytes &&
            memcmp(value->name, name, bytes) == 0) {
            return value;
        }
    }
    return NULL;
}

/* True if two descriptors mean the same register or the same word on the stack. */
static bool is_same_place(uint8_t left, uint8_t right)
{
    const uint32_t position = sj_value_position(left);
    return position == sj_value_position(right) &&
           (position >= SJ_PLACE_STACK ||
            sj_value_is_real(sj_value_kind_of(left)) == sj_value_is_real(sj_value_kind_of(right)));
}

/* Prints a warning if a named argument of the rule is in another place than the parameter of that
 * name in the debug data. */
static void compare_places(const checked_rule *rule, const sj_typed_function *typed)
{
    const sj_signature *signature = &rule->signature;
    const char *at = rule->text + strcspn(rule->text, "(") + 1;
    size_t value = 0;
    for (uint32_t number = 1; value < signature->count && strchr(")", *at) == NULL; number++) {
        size_t bytes = 0;
        const char *name = parse_name(&at, &bytes);
        if (sj_value_position(signature->values[value].source) != number) {
            continue; /* this argument is not recorded */
        }
        const sj_typed_value *typed_value = name != NULL ? find_named(typed, name, bytes) : NULL;
        if (typed_value != NULL &&
            !is_same_place(typed_value->place, signature->values[value].place)) {
            fprintf(stderr,
                    "sojourn: --value %.100s%.200s: in the debug data '%.*s' (%.100s) lies in "
                    "another place than here, where it is argument %" PRIu32
                    "; give all arguments in source order, with '_:KIND' for those that are not to "
                    "be recorded, or --value %.100s alone\n",
                    rule->function, rule->text, (int)bytes, name, typed_value->type, number,
                    rule->function);
            return;
        }
        value++;
    }
}

static void add_rule(signature_check *check, const json_t *rule)
{
    checked_rule *added = &check->rules[check->count];
    *added = (checked_rule){.function = json_string_value(json_object_get(rule, "function")),
                            .text = json_string_value(json_object_get(rule, "signature"))};
    if (added->function != NULL && added->text != NULL && strchr(added->text, '(') != NULL &&
        strpbrk(added->function, "*?[]!") == NULL &&
        sj_signature_parse(added->text, SJ_CONVENTION_NATIVE, false, &added->signature, NULL) ==
            SJ_OK) {
        check->count++;
    }
}

static void check_rules(const signature_check *check, sj_function_types *types)
{
    for (size_t i = 0; i < check->count; i++) {
        const checked_rule *rule = &check->rules[i];
        sj_typed_function *typed = NULL;
        if (rule->is_found &&
            sj_function_types_find(types, rule->address, rule->function, &typed) == SJ_OK) {
            compare_places(rule, typed);
        }
        sj_typed_function_free(typed);
    }
}

void sj_signature_check(const char *document, const char *binary)
{
    json_t *policy = json_loads(document, 0, NULL);
    const json_t *values = json_object_get(policy, "values");
    const size_t count = json_array_size(values);
    signature_check check = {.rules = calloc(count + 1, sizeof(*check.rules))};
    sj_function_types *types = NULL;
    for (size_t i = 0; check.rules != NULL && i < count; i++) {
        add_rule(&check, json_array_get(values, i));
    }
    if (find_functions(&check, binary) && sj_function_types_new(binary, &types) == SJ_OK) {
        check_rules(&check, types);
    }
    sj_function_types_free(types);
    free(check.rules);
    json_decref(policy);
}
