#include "proto/base/units.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sj_duration_parse(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9},  {"ns", 1},   {"us", 1e3},   {"ms", 1e6},
                 {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
    const double most_ns = 1e18;
    const size_t digits = strspn(text, "0123456789.");
    char *end = NULL;
    /* strtod also accepts signs, exponents and hexadecimal digits, which are not allowed here. */
    if (text[0] < '0' || text[0] > '9' || strpbrk(text, "xXpPeE") != NULL) {
        return false;
    }
    const double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (end == text + digits && strcmp(end, units[i].name) == 0 &&
            value * units[i].ns <= most_ns) {
            *ns = (uint64_t)(value * units[i].ns + 0.5);
            return true;
        }
    }
    return false;
}

bool sj_size_parse(const char *text, uint64_t *bytes)
{
    static const char units[] = "kMGT";
    const unsigned most_shift = 62;
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 19) {
        return false;
    }
    const uint64_t number = strtoull(text, NULL, 10);
    const char letter = text[digits] == 'K' ? 'k' : text[digits];
    const char *unit = letter != '\0' ? strchr(units, letter) : NULL;
    if (letter != '\0' && (unit == NULL || text[digits + 1] != '\0')) {
        return false;
    }
    const unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
    if (number > UINT64_C(1) << (most_shift - shift)) {
        return false;
    }
    *bytes = number << shift;
    return true;
}

static bool ends_in(const char *noun, const char *end)
{
    const size_t bytes = strlen(noun);
    const size_t end_bytes = strlen(end);
    return bytes >= end_bytes && strcmp(noun + bytes - end_bytes, end) == 0;
}

const char *sj_counted_text(uint64_t count, const char *noun, char text[SJ_COUNTED_BYTES])
{
    const size_t bytes = strlen(noun);
    const bool is_hissing = ends_in(noun, "s") || ends_in(noun, "x") || ends_in(noun, "ch");
    const bool has_y = bytes >= 2 && noun[bytes - 1] == 'y' && !strchr("aeiou", noun[bytes - 2]);
    if (count == 1) {
        snprintf(text, SJ_COUNTED_BYTES, "1 %s", noun);
    } else if (has_y) {
        snprintf(text, SJ_COUNTED_BYTES, "%llu %.*sies", (unsigned long long)count, (int)bytes - 1,
                 noun);
    } else {
        snprintf(text, SJ_COUNTED_BYTES, "%llu %s%s", (unsigned long long)count, noun,
                 is_hissing ? "es" : "s");
    }
    return text;
}
