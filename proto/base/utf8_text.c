#include "proto/base/utf8_text.h"

#include <string.h>

enum { LONGEST = 4 };

/* Returns the length of the UTF-8 sequence at `text`, or 0 if there is none. Reads at most `left`
 * bytes. */
static size_t sequence_within(const char *text, size_t left)
{
    const unsigned char *bytes = (const unsigned char *)text;
    const unsigned char first = bytes[0];
    const size_t size = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? LONGEST
                                       : 0;
    if (size > left) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) ||
        (first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] > 0x8f)) {
        return 0;
    }
    return size;
}

size_t sj_utf8_sequence(const char *text)
{
    /* the terminating NUL is not a continuation byte, so the scan stops there */
    return sequence_within(text, LONGEST);
}

size_t sj_utf8_clean(const char *text, char *out)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t length = 0;
    while (*text != '\0') {
        const size_t size = sj_utf8_sequence(text);
        const size_t put = size != 0 ? size : sizeof(replacement) - 1;
        if (out != NULL) {
            memcpy(out + length, size != 0 ? text : replacement, put);
        }
        length += put;
        text += size != 0 ? size : 1;
    }
    return length;
}

size_t sj_utf8_escape(const char *text, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    size_t length = 0;
    for (size_t at = 0; at < size;) {
        const unsigned char byte = (unsigned char)text[at];
        const size_t good = sequence_within(text + at, size - at);
        const char escaped[] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        const size_t put = good != 0 ? good : sizeof(escaped);
        if (out != NULL) {
            memcpy(out + length, good != 0 ? text + at : escaped, put);
        }
        length += put;
        at += good != 0 ? good : 1;
    }
    return length;
}
