#include "agent/policy/prototypes.h"

#include "agent/policy/value_signature.h"

#include <string.h>

static const char blanks[] = " \t\r";

/* Parses a line that is not a comment. Modifies the line. */
static sj_status read_line(char *line, const char *origin, size_t number, void *context,
                           sj_status (*visit)(void *, const char *, const char *), sj_error *error)
{
    sj_signature signature;
    sj_error reason = {0};
    char *open = strchr(line, '(');
    if (open == NULL || open == line) {
        return sj_fail(error, SJ_EINVAL, "%.200s:%zu: NAME(NAME:KIND, ...) -> KIND is needed",
                       origin, number);
    }
    if (sj_signature_parse(open, SJ_CONVENTION_NATIVE, false, &signature, &reason) != SJ_OK) {
        return sj_fail(error, SJ_EINVAL, "%.200s:%zu: %s", origin, number, reason.text);
    }
    char name[SJ_PROTOTYPE_BYTES];
    size_t length = (size_t)(open - line);
    while (length > 0 && strchr(blanks, line[length - 1]) != NULL) {
        length--;
    }
    memcpy(name, line, length);
    name[length] = '\0';
    return visit(context, name, open);
}

sj_status sj_prototypes_read(const char *text, size_t bytes, const char *origin, void *context,
                             sj_status (*visit)(void *context, const char *name,
                                                const char *signature),
                             sj_error *error)
{
    size_t number = 0;
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end != NULL ? (size_t)(end - text) - at : bytes - at;
        const char *from = text + at;
        char line[SJ_PROTOTYPE_BYTES];
        at += length + 1;
        number++;
        while (length > 0 && strchr(blanks, from[0]) != NULL) {
            from++;
            length--;
        }
        while (length > 0 && strchr(blanks, from[length - 1]) != NULL) {
            length--;
        }
        if (length == 0 || from[0] == '#') {
            continue;
        }
        if (length >= sizeof(line) || memchr(from, '\0', length) != NULL) {
            return sj_fail(error, SJ_EINVAL, "%.200s:%zu: the line is too long, or no text", origin,
                           number);
        }
        memcpy(line, from, length);
        line[length] = '\0';
        SJ_TRY(read_line(line, origin, number, context, visit, error));
    }
    return SJ_OK;
}
