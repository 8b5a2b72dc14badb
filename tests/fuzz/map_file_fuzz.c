/* Reads arbitrary bytes as a map file. Names must end within their copy. */
#include "agent/objfile/map_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *names = NULL;
    sj_symbols symbols = {0};
    const sj_slice bytes = {.data = data, .size = size};
    if (sj_map_parse(bytes, &names, &symbols) == SJ_OK) {
        for (size_t i = 0; i < symbols.count; i++) {
            if (symbols.items[i].name < names ||
                symbols.items[i].name + strlen(symbols.items[i].name) > names + size) {
                abort();
            }
        }
    }
    sj_symbols_free(&symbols);
    free(names);
    return 0;
}
