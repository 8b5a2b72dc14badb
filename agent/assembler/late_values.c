#include "agent/assembler/late_values.h"

#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

void sj_late_values_deinit(sj_late_values *late)
{
    free(late->calls);
    free(late->values);
    free(late->texts);
    *late = (sj_late_values){0};
}

static void drop_last(sj_late_values *late)
{
    const sj_late_call *last = &late->calls[--late->call_count];
    late->value_count = last->first;
    late->text_bytes = last->first_text;
}

/* Appends the texts of values to the stored ones. */
static void keep_texts(sj_late_values *late, const sj_block_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (values[i].text_bytes != 0) {
            memcpy(late->texts + late->text_bytes, values[i].text, values[i].text_bytes);
            late->text_bytes += values[i].text_bytes;
        }
    }
}

sj_status sj_late_values_push(sj_late_values *late, uint64_t call_index, uint32_t depth,
                              const sj_block_value *values, size_t count)
{
    while (late->call_count != 0 && late->calls[late->call_count - 1].depth >= depth) {
        drop_last(late);
    }
    size_t text_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        text_bytes += values[i].text_bytes;
    }
    if (count > SJ_LATE_VALUES - late->value_count ||
        text_bytes > SJ_LATE_TEXT_BYTES - late->text_bytes) {
        return SJ_EFULL;
    }
    SJ_TRY(sj_array_reserve(&late->calls, &late->call_capacity, late->call_count, 1,
                            sizeof(*late->calls)));
    SJ_TRY(sj_array_reserve(&late->values, &late->value_capacity, late->value_count, count,
                            sizeof(*late->values)));
    SJ_TRY(sj_array_reserve(&late->texts, &late->text_capacity, late->text_bytes, text_bytes, 1));
    late->calls[late->call_count++] = (sj_late_call){.call_index = call_index,
                                                     .depth = depth,
                                                     .first = late->value_count,
                                                     .first_text = late->text_bytes};
    memcpy(late->values + late->value_count, values, count * sizeof(*values));
    keep_texts(late, values, count);
    late->value_count += count;
    return SJ_OK;
}

size_t sj_late_values_pop(sj_late_values *late, uint64_t call_index, const sj_block_value **values)
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
    size_t text = late->calls[place - 1].first_text;
    for (size_t i = late->calls[place - 1].first; i < end; i++) {
        late->values[i].text = late->values[i].text_bytes != 0 ? late->texts + text : NULL;
        text += late->values[i].text_bytes;
    }
    *values = late->values + late->calls[place - 1].first;
    drop_last(late);
    return end - late->value_count;
}
