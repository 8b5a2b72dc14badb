#include "collector-server/query/compare_internal.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

static size_t slot_of(const sj_compare *compare, uint32_t parent, uint64_t key)
{
    uint64_t hash = (key ^ ((uint64_t)parent << 32 | parent)) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
    size_t slot = (size_t)hash & (compare->slot_count - 1);
    while (compare->slots[slot] != 0) {
        const sj_compare_row *row = &compare->rows[compare->slots[slot] - 1];
        if (row->parent == parent && row->symbol_key == key) {
            break;
        }
        slot = (slot + 1) & (compare->slot_count - 1);
    }
    return slot;
}

static sj_status grow(sj_compare *compare)
{
    const size_t capacity = compare->capacity != 0 ? compare->capacity * 2 : FIRST_CAPACITY;
    const size_t row_bytes = compare->samples * SJ_MEASURES * sizeof(double);
    sj_compare_row *rows = realloc(compare->rows, capacity * sizeof(*rows));
    compare->rows = rows != NULL ? rows : compare->rows;
    double *values = realloc(compare->values, capacity * row_bytes);
    compare->values = values != NULL ? values : compare->values;
    uint32_t *slots = calloc(capacity * 2, sizeof(*slots));
    if (rows == NULL || values == NULL || slots == NULL) {
        free(slots);
        return SJ_ENOMEM;
    }
    free(compare->slots);
    compare->slots = slots;
    compare->slot_count = capacity * 2;
    compare->capacity = capacity;
    for (size_t i = 1; i < compare->count; ++i) { /* row 0 is never looked up */
        compare->slots[slot_of(compare, rows[i].parent, rows[i].symbol_key)] = (uint32_t)i + 1;
    }
    return SJ_OK;
}

sj_status sj_compare_add_row(sj_compare *compare, uint32_t parent, uint64_t key, uint32_t *number)
{
    if (compare->count == compare->capacity) {
        SJ_TRY(grow(compare));
    }
    if (compare->count != 0) {
        const size_t slot = slot_of(compare, parent, key);
        if (compare->slots[slot] != 0) {
            *number = compare->slots[slot] - 1;
            return SJ_OK;
        }
        compare->slots[slot] = (uint32_t)compare->count + 1;
    }
    *number = (uint32_t)compare->count++;
    compare->rows[*number] = (sj_compare_row){
        .symbol_key = key,
        .parent = parent,
        .depth = parent != 0 ? compare->rows[parent].depth + 1 : 0,
        .tests = {{.p_value = 1, .p_adjusted = 1}, {.p_value = 1, .p_adjusted = 1}},
    };
    memset(sj_compare_value(compare, *number, 0, 0), 0,
           compare->samples * SJ_MEASURES * sizeof(double));
    return SJ_OK;
}
