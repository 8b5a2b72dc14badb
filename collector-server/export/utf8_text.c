#include "collector-server/export/utf8_text.h"

#include <string.h>

size_t sj_utf8_sequence(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    const unsigned char first = bytes[0];
    const size_t size = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
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
