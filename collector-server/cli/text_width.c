#include "collector-server/cli/text_width.h"

#include <stdbool.h>
#include <stdint.h>

/* One character: its bytes, and the columns it takes. Bytes that are not UTF-8 stand alone. */
static size_t measure_character(const char *text, int *width)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = bytes[0] < 0x80   ? 1
                    : bytes[0] < 0xc2 ? 0
                    : bytes[0] < 0xe0 ? 2
                    : bytes[0] < 0xf0 ? 3
                    : bytes[0] < 0xf5 ? 4
                                      : 0;
    uint32_t code = length < 2 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; ++i) {
        if ((bytes[i] & 0xc0) != 0x80) {
            length = 0;
            break;
        }
        code = code << 6 | (bytes[i] & 0x3f);
    }
    if (length == 0) {
        *width = 1;
        return 1;
    }
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
        int one;
        const size_t length = measure_character(text + used, &one);
        if (one > width) {
            break;
        }
        width -= one;
        used += length;
    }
    return used;
}
