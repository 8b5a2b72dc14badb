#include "collector-server/http/route.h"

#include <string.h>

/* Reads a positive number of at most 18 digits without leading zeros, so that every id has one
 * spelling. Returns the end of the number, or NULL. */
static const char *read_id(const char *text, int64_t *id)
{
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 18 || text[0] == '0') {
        return NULL;
    }
    int64_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        value = value * 10 + (text[i] - '0');
    }
    *id = value;
    return text + digits;
}

bool sj_route_match(const char *pattern, const char *path, int64_t *id)
{
    static const char id_mark[] = "{id}";
    *id = 0;
    const char *hole = strstr(pattern, id_mark);
    if (hole == NULL) {
        return strcmp(pattern, path) == 0;
    }
    const size_t head = (size_t)(hole - pattern);
    if (strncmp(pattern, path, head) != 0) {
        return false;
    }
    const char *tail = read_id(path + head, id);
    return tail != NULL && strcmp(hole + sizeof(id_mark) - 1, tail) == 0;
}
