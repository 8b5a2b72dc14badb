#include "collector-server/export/json_text.h"

#include <stddef.h>

/* sequence_bytes returns the length of the UTF-8 sequence at `text`, 0 when there is none. */
static size_t sequence_bytes(const unsigned char *text)
{
    const unsigned char first = text[0];
    const size_t size = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
        (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f)) {
        return 0;
    }
    return size;
}

void sj_json_text(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    fputc('"', file);
    while (*at != '\0') {
        const size_t size = sequence_bytes(at);
        if (size == 0) {
            fputs("\\ufffd", file);
            at++;
        } else if (*at == '"' || *at == '\\') {
            fprintf(file, "\\%c", *at++);
        } else if (*at < 0x20) {
            fprintf(file, "\\u%04x", *at++);
        } else {
            fwrite(at, 1, size, file);
            at += size;
        }
    }
    fputc('"', file);
}
