#include "agent/assembler/late_values.h"

#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

void sj_late_values_deinit(sj_late_values *late)
{
    free(late->calls);
    free(late->values);
    *late = (sj_late_values){0};
}

static void drop_last(sj_late_values *late)
{
    late->value_count = late->calls[--late->call_count].first;
}

sj_status sj_late_values_put(sj_late_values *late, uint64_t call_index, uint32_t depth,
                             const sj_block_value *values, size_t count)
{
    while (late->call_count != 0 && late->calls[late->call_count - 1].depth >= depth) {
        drop_last(late);
    }
    if (count > SJ_LATE_VALUES - late->value_count) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&late->calls, &late->call_capacity, late->call_count, 1,
                            sizeof(*late->calls)));
    SJ_TRY(sj_array_reserve(&late->values, &late->value_capacity, late->value_count, count,
                            sizeof(*late->values)));
    late->calls[late->call_count++] =
        (sj_late_call){.call_index = call_index, .depth = depth, .first = late->value_count};
    memcpy(late->values + late->value_count, values, count * sizeof(*values));
    late->value_count += count;
    return SJ_OK;
}

size_t sj_late_values_take(sj_late_values *late, uint64_t call_index, const sj_block_value **values)
{
    size_t place = late->call_count;
    while (place > 0 && late->calls[place - 1].call_index != call_index) {
        place--;
    }
    if (place == 0) {
        return 0;
    }
    const size_t end = place < late->call_count ? late->calls[place].first : late->value_count;
    late->call_count = place;
    *values = late->values + late->calls[place - 1].first;
    drop_last(late);
    return end - late->value_count;
}
