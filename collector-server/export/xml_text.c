#include "collector-server/export/xml_text.h"

#include "proto/base/utf8_text.h"

void sj_xml_text(FILE *file, const char *text)
{
    while (*text != '\0') {
        const size_t size = sj_utf8_sequence(text);
        if (size != 1) {
            fwrite(size != 0 ? text : "\xef\xbf\xbd", 1, size != 0 ? size : 3, file);
        } else if (*text == '&') {
            fputs("&amp;", file);
        } else if (*text == '<') {
            fputs("&lt;", file);
        } else if (*text == '>') {
            fputs("&gt;", file);
        } else if (*text == '"') {
            fputs("&quot;", file);
        } else {
            fputc((unsigned char)*text < 0x20 ? '?' : *text, file);
        }
        text += size != 0 ? size : 1;
    }
}
