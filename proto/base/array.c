#include "proto/base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_ELEMENTS = 16 };

sj_status sj_array_reserve(void *items, size_t *capacity, size_t count, size_t more,
                           size_t element_bytes)
{
    void **array = items;
    if (more <= *capacity - count) {
        return SJ_OK;
    }
    if (more > UINT32_MAX || count > UINT32_MAX - more) {
        return SJ_ELIMIT;
    }
    size_t wanted = *capacity == 0 ? LEAST_ELEMENTS : 2 * *capacity;
    wanted = wanted < count + more ? count + more : wanted;
    uint8_t *grown = realloc(*array, wanted * element_bytes);
    if (grown == NULL) {
        return SJ_ENOMEM;
    }
    memset(grown + *capacity * element_bytes, 0, (wanted - *capacity) * element_bytes);
    *array = grown;
    *capacity = wanted;
    return SJ_OK;
}
