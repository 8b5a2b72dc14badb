#include "collector-server/export/json_text.h"

#include "proto/base/utf8_text.h"

void sj_json_text(FILE *file, const char *text)
{
    fputc('"', file);
    while (*text != '\0') {
        const size_t size = sj_utf8_sequence(text);
        if (size == 0) {
            fputs("\\ufffd", file);
            text++;
        } else if (*text == '"' || *text == '\\') {
            fprintf(file, "\\%c", *text++);
        } else if ((unsigned char)*text < 0x20) {
            fprintf(file, "\\u%04x", (unsigned)(unsigned char)*text++);
        } else {
            fwrite(text, 1, size, file);
            text += size;
        }
    }
    fputc('"', file);
}
