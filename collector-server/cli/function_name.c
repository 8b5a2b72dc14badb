#include "collector-server/cli/function_name.h"

#include "collector-server/cli/text_width.h"

#include <stdio.h>
#include <string.h>

enum { TAIL_BYTES = 8 /* "(", an ellipsis of at most 3 bytes, ")" */ };

/* Positions of the parts of a qualified name. */
typedef struct name_parts {
    size_t method;    /* start of the method name, after the last scope */
    size_t arguments; /* position of the '(' before the arguments, or the end */
} name_parts;

/* Splits a qualified name. Ignores "::" and "(" inside <> or (). "operator()", "operator<" and
 * "(anonymous namespace)" are names. */
static name_parts split_name(const char *name)
{
    name_parts parts = {0, strlen(name)};
    int nested = 0;
    for (size_t i = 0; name[i] != '\0'; i++) {
        if (nested == 0 && i == parts.method && strncmp(name + i, "operator", 8) == 0) {
            i += 8;
            i += strncmp(name + i, "()", 2) == 0 ? 2 : strspn(name + i, "<>=-");
            if (name[i] == '\0') {
                break;
            }
        }
        if (name[i] == '(' && nested == 0 && i != parts.method) {
            parts.arguments = i;
            break;
        }
        if (name[i] == '<' || name[i] == '(') {
            nested++;
        } else if ((name[i] == '>' || name[i] == ')') && nested > 0) {
            nested--;
        } else if (name[i] == ':' && name[i + 1] == ':' && nested == 0) {
            parts.method = i + 2;
            i++;
        }
    }
    return parts;
}

/* Returns the number of bytes to skip so that the last `columns` columns remain. */
static size_t skip_left(const char *text, int columns)
{
    return sj_text_cut(text, sj_text_width(text) - columns > 0 ? sj_text_width(text) - columns : 0);
}

const char *sj_function_name_fit(const char *name, int columns, char text[SJ_FUNCTION_NAME_BYTES])
{
    snprintf(text, SJ_FUNCTION_NAME_BYTES, "%s", name);
    sj_text_clean(text);
    if (columns <= 0 || sj_text_width(text) <= columns) {
        return text;
    }
    char whole[SJ_FUNCTION_NAME_BYTES];
    memcpy(whole, text, sizeof(whole));
    const name_parts parts = split_name(whole);
    const char *ellipsis = sj_text_ellipsis();
    char tail[TAIL_BYTES] = "";
    if (whole[parts.arguments] != '\0') {
        snprintf(tail, sizeof(tail), "(%s)", ellipsis);
    }
    whole[parts.arguments] = '\0';
    const int space = columns - sj_text_width(tail);
    if (sj_text_width(whole) <= space) {
        snprintf(text, SJ_FUNCTION_NAME_BYTES, "%.*s%s", SJ_FUNCTION_NAME_BYTES - TAIL_BYTES, whole,
                 tail);
    } else if (sj_text_width(whole + parts.method) < space) {
        const size_t skipped = skip_left(whole, space - 1);
        snprintf(text, SJ_FUNCTION_NAME_BYTES, "%s%s%s", ellipsis, whole + skipped, tail);
    } else {
        const char *method = whole + parts.method;
        const size_t bytes = sj_text_cut(method, columns - 1);
        snprintf(text, SJ_FUNCTION_NAME_BYTES, "%.*s%s", (int)bytes, method,
                 method[bytes] != '\0' ? ellipsis : "");
    }
    return text;
}
