/* Design notes. Names of methods are split by their runtime (agent/runtimes). In other names, the
 * class ends at the last "::" outside brackets and before the arguments. The result type that
 * demanglers write before names of templates ("int ns::f<int>(int)") is skipped. */
#include "collector-server/query/name_scope.h"

#include "agent/runtimes/runtime.h"

#include <string.h>

static const char anonymous_namespace[] = "(anonymous namespace)";

static size_t count_bracket(char sign, bool opens)
{
    return opens ? sign == '<' || sign == '(' || sign == '[' || sign == '{'
                 : sign == '>' || sign == ')' || sign == ']' || sign == '}';
}

/* Returns the length of an operator's name at `at`, 0 if there is none: "operator<", "operator()",
 * "operator->". Its signs are not brackets. */
static size_t operator_bytes(const char *at)
{
    static const char word[] = "operator";
    if (strncmp(at, word, sizeof(word) - 1) != 0) {
        return 0;
    }
    const char *sign = at + sizeof(word) - 1;
    const size_t signs = strspn(sign, "<>=()[]-");
    const bool is_call = strncmp(sign, "()", 2) == 0;
    return sizeof(word) - 1 +
           (is_call                      ? 2
            : sign[0] == '('             ? 0
            : strcspn(sign, "(") < signs ? strcspn(sign, "(")
                                         : signs);
}

size_t sj_name_class_bytes(const char *name, const char **start)
{
    size_t runtime;
    sj_method_parts parts;
    *start = name;
    if (sj_runtime_of_method(name, &runtime) && sj_runtimes[runtime]->split_method(name, &parts)) {
        const char *found = strstr(name, parts.class);
        *start = found != NULL ? found : name;
        return found != NULL ? strlen(parts.class) : 0;
    }
    const char *begin = name;
    const char *colons = NULL;
    const char *dot = NULL; /* ends the class in a Java name; Java names always have arguments */
    size_t depth = 0;
    for (const char *at = name; *at != '\0'; at++) {
        const size_t operator_name = depth == 0 ? operator_bytes(at) : 0;
        if (operator_name != 0) {
            at += operator_name - 1;
        } else if (depth == 0 &&
                   strncmp(at, anonymous_namespace, sizeof(anonymous_namespace) - 1) == 0) {
            at += sizeof(anonymous_namespace) - 2;
        } else if (depth == 0 && *at == '(') {
            colons = colons != NULL ? colons : dot;
            break; /* arguments */
        } else if (depth == 0 && *at == ' ') {
            begin = at + 1;
            colons = NULL;
            dot = NULL;
        } else if (depth == 0 && at[0] == ':' && at[1] == ':') {
            colons = at++;
        } else if (depth == 0 && *at == '.') {
            dot = at;
        } else {
            depth += count_bracket(*at, true);
            depth -= depth != 0 ? count_bracket(*at, false) : 0;
        }
    }
    *start = begin;
    return colons != NULL ? (size_t)(colons - begin) : 0;
}

size_t sj_name_namespace_bytes(const char *class_start, size_t bytes)
{
    size_t depth = 0;
    size_t last = 0;
    for (size_t i = 0; i < bytes; i++) {
        const char sign = class_start[i];
        if (depth == 0 && (sign == '/' || sign == '$')) {
            break; /* a nested class */
        }
        if (depth == 0 && sign == '.') {
            last = i;
        } else if (depth == 0 && sign == ':' && i + 1 < bytes && class_start[i + 1] == ':') {
            last = i++;
        }
        depth += count_bracket(sign, true);
        depth -= depth != 0 ? count_bracket(sign, false) : 0;
    }
    return last;
}
