#include "collector-server/cli/text_width.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NO_CHARACTER = 0x110000 }; /* after the last character of Unicode */

/* Returns the length of a UTF-8 character whose first byte is `first`. Returns 0 if no character
 * begins with that byte. */
static size_t sequence_length(unsigned char first)
{
    return first < 0x80   ? 1
           : first < 0xc2 ? 0
           : first < 0xe0 ? 2
           : first < 0xf0 ? 3
           : first < 0xf5 ? 4
                          : 0;
}

/* Returns the length of the first character of a text and writes its code. A byte that is not UTF-8
 * counts as a character with the code NO_CHARACTER. */
static size_t read_character(const char *text, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    const size_t length = sequence_length(bytes[0]);
    *code = length < 2 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; ++i) {
        if ((bytes[i] & 0xc0) != 0x80) {
            *code = NO_CHARACTER;
            return 1;
        }
        *code = *code << 6 | (bytes[i] & 0x3f);
    }
    const bool is_surrogate = *code >= 0xd800 && *code < 0xe000;
    if (length == 0 || *code < least[length] || is_surrogate || *code > 0x10ffff) {
        *code = NO_CHARACTER;
        return 1;
    }
    return length;
}

bool sj_text_is_ascii(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *locale = getenv(variables[i]);
        if (locale != NULL && locale[0] != '\0') {
            return strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0;
        }
    }
    return false;
}

const char *sj_text_ellipsis(void)
{
    return sj_text_is_ascii() ? "*" : "\xe2\x80\xa6";
}

static bool is_shown(uint32_t code, bool is_ascii)
{
    return !(is_ascii && code >= 0x80) && code >= 0x20 && (code < 0x7f || code >= 0xa0) &&
           code != NO_CHARACTER;
}

/* Returns the length of the first character of a text in bytes, and its width in columns. */
static size_t measure_character(const char *text, int *width)
{
    uint32_t code;
    const size_t length = read_character(text, &code);
    const bool combining = code >= 0x300 && code < 0x370;
    const bool doubled = (code >= 0x1100 && code < 0x1160) || (code >= 0x2e80 && code < 0xa4d0) ||
                         (code >= 0xac00 && code < 0xd7a4) || (code >= 0xf900 && code < 0xfb00) ||
                         (code >= 0xff00 && code < 0xff61) || (code >= 0x1f300 && code < 0x1faff);
    *width = combining ? 0 : doubled ? 2 : 1;
    return length;
}

int sj_text_width(const char *text)
{
    int sum = 0;
    while (*text != '\0') {
        int width;
        text += measure_character(text, &width);
        sum += width;
    }
    return sum;
}

size_t sj_text_cut(const char *text, int width)
{
    size_t used = 0;
    while (text[used] != '\0') {
        int character_width;
        const size_t length = measure_character(text + used, &character_width);
        if (character_width > width) {
            break;
        }
        width -= character_width;
        used += length;
    }
    return used;
}

void sj_text_write(FILE *file, const char *text, size_t bytes)
{
    const bool is_ascii = sj_text_is_ascii();
    size_t length;
    for (size_t i = 0; i < bytes; i += length) {
        uint32_t code;
        length = read_character(text + i, &code);
        if (is_shown(code, is_ascii) && length <= bytes - i) {
            fwrite(text + i, 1, length, file);
        } else {
            fputc('?', file);
        }
    }
}

void sj_text_clean(char *text)
{
    const bool is_ascii = sj_text_is_ascii();
    char *to = text;
    size_t length;
    for (; *text != '\0'; text += length) {
        uint32_t code;
        length = read_character(text, &code);
        if (is_shown(code, is_ascii)) {
            memmove(to, text, length);
            to += length;
        } else {
            *to++ = '?';
        }
    }
    *to = '\0';
}
