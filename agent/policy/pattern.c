#include "agent/policy/pattern.h"

#include "agent/objfile/demangle.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 1024, SYMBOL_BYTES = SJ_FUNCTION_KEY_BYTES };

static sj_status compile_pattern(const char *text, size_t bytes, sj_pattern *pattern,
                                 sj_error *error)
{
    char expression[SJ_PATTERN_MAX_BYTES + 1] = "";
    char reason[128];
    memcpy(expression, text + 1, bytes - 2);
    /* With counted repetition or back-references, the C library's matcher can use unlimited time or
     * memory. */
    for (const char *at = expression; *at != '\0'; at++) {
        if (*at == '{') {
            return sj_fail(error, SJ_EINVAL, "\"%s\": counted repetition {n} is not allowed", text);
        }
        if (*at == '\\' && at[1] != '\0' && *++at >= '1' && *at <= '9') {
            return sj_fail(error, SJ_EINVAL, "\"%s\": back-references are not allowed", text);
        }
    }
    pattern->regex = calloc(1, sizeof(*pattern->regex));
    if (pattern->regex == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const int problem = regcomp(pattern->regex, expression, REG_EXTENDED | REG_NOSUB);
    if (problem != 0) {
        regerror(problem, pattern->regex, reason, sizeof(reason));
        free(pattern->regex);
        pattern->regex = NULL;
        return sj_fail(error, SJ_EINVAL, "\"%s\" is not a regular expression: %s", text, reason);
    }
    return SJ_OK;
}

/* Parses a place, which only patterns of functions can be. */
static sj_status read_place(const char *text, sj_pattern *pattern, sj_error *error)
{
    pattern->place = calloc(1, sizeof(*pattern->place));
    return pattern->place != NULL ? sj_function_place_parse(text, pattern->place, error)
                                  : sj_fail(error, SJ_ENOMEM, "out of memory");
}

sj_status sj_pattern_make(const char *text, sj_pattern *pattern, sj_error *error)
{
    const size_t bytes = strlen(text);
    *pattern = (sj_pattern){0};
    if (bytes == 0) {
        return sj_fail(error, SJ_EINVAL, "a pattern is empty");
    }
    if (bytes > SJ_PATTERN_MAX_BYTES) {
        return sj_fail(error, SJ_ELIMIT, "a pattern has more than %d bytes", SJ_PATTERN_MAX_BYTES);
    }
    if (text[0] == '/' && bytes > 2 && text[bytes - 1] == '/') {
        SJ_TRY(compile_pattern(text, bytes, pattern, error));
    } else if (sj_function_place_is(text)) {
        const sj_status status = read_place(text, pattern, error);
        if (status != SJ_OK) {
            sj_pattern_free(pattern);
            return status;
        }
    }
    pattern->text = strdup(text);
    if (pattern->text == NULL) {
        sj_pattern_free(pattern);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    return SJ_OK;
}

void sj_pattern_free(sj_pattern *pattern)
{
    if (pattern->regex != NULL) {
        regfree(pattern->regex);
        free(pattern->regex);
    }
    free(pattern->text);
    free(pattern->place);
    *pattern = (sj_pattern){0};
}

/* True if a glob starts like the name of a method, -[Class selector]: its bracket is not a set. */
static bool names_method(const char *glob)
{
    return (glob[0] == '-' || glob[0] == '+') && glob[1] == '[';
}

static bool matches_glob(const char *glob, const char *text)
{
    if (names_method(glob)) {
        return text[0] == glob[0] && text[1] == '[' && fnmatch(glob + 2, text + 2, 0) == 0;
    }
    return fnmatch(glob, text, 0) == 0;
}

bool sj_pattern_matches(const sj_pattern *pattern, const char *text)
{
    return pattern->regex != NULL ? regexec(pattern->regex, text, 0, NULL, 0) == 0
                                  : matches_glob(pattern->text, text);
}

bool sj_pattern_matches_any(const sj_pattern *patterns, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (sj_pattern_matches(&patterns[i], text)) {
            return true;
        }
    }
    return false;
}

/* Matches the part of a name before its parameters. */
static bool matches_bare(const sj_pattern *pattern, const char *name)
{
    char bare[NAME_BYTES];
    const char *parameters = strchr(name, '(');
    if (parameters == NULL || parameters == name || (size_t)(parameters - name) >= sizeof(bare)) {
        return false;
    }
    memcpy(bare, name, (size_t)(parameters - name));
    bare[parameters - name] = '\0';
    return sj_pattern_matches(pattern, bare);
}

static bool matches_name(const sj_pattern *pattern, const char *symbol)
{
    char name[NAME_BYTES];
    if (sj_pattern_matches(pattern, symbol)) {
        return true;
    }
    if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R')) {
        /* A managed method's name has types. The brackets of an Objective-C category are not
         * types. */
        return symbol[0] != '-' && symbol[0] != '+' && matches_bare(pattern, symbol);
    }
    sj_demangle(symbol, name, sizeof(name));
    return sj_pattern_matches(pattern, name) || matches_bare(pattern, name);
}

bool sj_pattern_matches_symbol(const sj_pattern *pattern, const char *symbol)
{
    char name[SYMBOL_BYTES];
    if (pattern->place != NULL) {
        return sj_function_place_has(pattern->place, symbol) || strcmp(pattern->text, symbol) == 0;
    }
    const char *end = strchr(symbol, SJ_FUNCTION_KEY_PLACE);
    if (end == NULL || (size_t)(end - symbol) >= sizeof(name)) {
        return matches_name(pattern, symbol);
    }
    memcpy(name, symbol, (size_t)(end - symbol));
    name[end - symbol] = '\0';
    return matches_name(pattern, name);
}

bool sj_pattern_same(const sj_pattern *left, size_t left_count, const sj_pattern *right,
                     size_t right_count)
{
    for (size_t i = 0; i < left_count && left_count == right_count; i++) {
        if (strcmp(left[i].text, right[i].text) != 0) {
            return false;
        }
    }
    return left_count == right_count;
}
