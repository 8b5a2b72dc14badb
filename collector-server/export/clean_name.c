#include "collector-server/export/clean_name.h"

#include "proto/base/utf8_text.h"

#include <stdlib.h>

char *sj_clean_name(const char *name)
{
    const size_t size = sj_utf8_clean(name, NULL);
    char *clean = malloc(size + 1);
    if (clean != NULL) {
        (void)sj_utf8_clean(name, clean);
        clean[size] = '\0';
    }
    return clean;
}

void sj_write_in_line(FILE *output, const char *name)
{
    for (; *name != '\0'; name++) {
        fputc(*name == '\n' || *name == '\r' ? ' ' : *name, output);
    }
}
