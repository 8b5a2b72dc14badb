/* Reads arbitrary bytes as a file with debug data. What is reported of functions' types must be
 * within the documented limits. */
#include "agent/objfile/function_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OFFSETS = 0x800 }; /* offset at which the functions of the corpus begin */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void look_at(const sj_typed_function *function)
{
    uint8_t places[SJ_PLACES_PER_FUNCTION] = {0};
    size_t letters = 0;
    must(function->count <= SJ_PLACES_PER_FUNCTION);
    for (size_t i = 0; i < function->count; i++) {
        const sj_typed_value *value = &function->values[i];
        must(value->state < SJ_TYPED_STATES && value->name != NULL && value->type != NULL);
        letters += strlen(value->name) + strlen(value->type);
        for (size_t k = 0; k < value->enumerator_count; k++) {
            letters += strlen(value->enumerators[k].name);
        }
    }
    (void)sj_typed_function_list(function, 0, places);
    (void)sj_typed_function_list_result(function, 0, places);
    must(letters < SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    sj_function_types *types = NULL;
    const int file = memfd_create("module", MFD_CLOEXEC);
    must(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    if (sj_function_types_new(path, &types) == SJ_OK) {
        for (uint64_t offset = 0; offset < OFFSETS; offset++) {
            sj_typed_function *function = NULL;
            if (sj_function_types_find(types, offset, "f", &function) == SJ_OK) {
                look_at(function);
                sj_typed_function_free(function);
            }
        }
    }
    sj_function_types_free(types);
    close(file);
    return 0;
}
