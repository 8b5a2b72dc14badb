#include "agent/drain/filter_values.h"

#include "proto/base/array.h"
#include "proto/block/value.h"

#include <stdlib.h>

void sj_filter_values_deinit(sj_filter_values *values)
{
    free(values->waiting);
    free(values->claimed);
    free(values->held);
    *values = (sj_filter_values){0};
}

/* Counts the values in the records. Further records of the same text do not count. */
static uint64_t count_values(const sj_record *records, size_t count)
{
    uint64_t values = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t part = sj_record_part_of(&records[i]);
        values += part == SJ_PART_VALUE || part == SJ_PART_CHANGED;
    }
    return values;
}

sj_status sj_filter_values_add(sj_filter_values *values, const sj_record *record)
{
    if (values->waiting_count == SJ_FILTER_VALUES_WAITING) {
        values->lost += count_values(values->waiting, values->waiting_count);
        values->waiting_count = 0;
    }
    SJ_TRY(sj_array_reserve(&values->waiting, &values->waiting_capacity, values->waiting_count, 1,
                            sizeof(*values->waiting)));
    values->waiting[values->waiting_count++] = *record;
    return SJ_OK;
}

/* True if a value belongs to a record. The assembler uses the same rule. */
static bool is_of(const sj_record *value, const sj_record *record)
{
    enum { DESCRIPTOR = 11 };
    const uint32_t tag = sj_record_tag(record);
    const bool is_entry = tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER;
    return ((sj_record_tag(value) ^ tag) & SJ_RECORD_FUNCTION_MASK) == 0 &&
           ((sj_record_value_stack(value) ^ (uint32_t)sj_record_stack(record)) &
            SJ_RECORD_VALUE_STACK_MASK) == 0 &&
           sj_value_is_at_exit(value->bytes[DESCRIPTOR]) != is_entry;
}

sj_status sj_filter_values_claim(sj_filter_values *values, const sj_record *of)
{
    size_t kept = 0;
    values->claimed_count = 0;
    SJ_TRY(sj_array_reserve(&values->claimed, &values->claimed_capacity, 0, values->waiting_count,
                            sizeof(*values->claimed)));
    for (size_t i = 0; i < values->waiting_count; i++) {
        if (is_of(&values->waiting[i], of)) {
            values->claimed[values->claimed_count++] = values->waiting[i];
        } else {
            values->waiting[kept++] = values->waiting[i];
        }
    }
    values->waiting_count = kept;
    return SJ_OK;
}

sj_status sj_filter_values_hold(sj_filter_values *values)
{
    if (values->held_count + values->claimed_count > SJ_FILTER_VALUES_HELD) {
        values->lost += count_values(values->claimed, values->claimed_count);
        values->claimed_count = 0;
    }
    SJ_TRY(sj_array_reserve(&values->held, &values->held_capacity, values->held_count,
                            values->claimed_count, sizeof(*values->held)));
    for (size_t i = 0; i < values->claimed_count; i++) {
        values->held[values->held_count++] = values->claimed[i];
    }
    values->claimed_count = 0;
    return SJ_OK;
}
