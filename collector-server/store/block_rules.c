#include "collector-server/store/block_rules.h"

bool sj_block_numbers_are_sound(const sj_block_header *header)
{
    const uint64_t most_calls = UINT64_C(1) << SJ_CALL_INDEX_BITS;
    return header->stream != 0 && header->first_ticks <= INT64_MAX &&
           header->last_ticks <= INT64_MAX && header->first_event <= INT64_MAX / 2 &&
           header->first_call < most_calls &&
           header->first_call + header->call_count <= most_calls &&
           header->lost_calls <= most_calls && header->lost_events <= INT64_MAX / 2;
}

static sj_status fail_unknown(sj_error *error, uint32_t function)
{
    return sj_fail(error, SJ_ENOTFOUND, "function %u is in no module that was sent", function);
}

sj_status sj_block_check_functions(const sj_block *block, sj_block_function_is_known *is_known,
                                   void *context, sj_error *error)
{
    for (size_t i = 0; i < block->function_count; ++i) {
        if (!is_known(context, block->functions[i])) {
            return fail_unknown(error, block->functions[i]);
        }
    }
    for (size_t i = 0; i < block->frame_count; ++i) {
        if (!is_known(context, block->frames[i].function)) {
            return fail_unknown(error, block->frames[i].function);
        }
    }
    for (size_t i = 0; i < block->value_count; ++i) {
        const sj_block_value *value = &block->values[i];
        if (value->descriptor == sj_value_descriptor(SJ_COST_FUNCTION, SJ_VALUE_COST) &&
            (value->bits > UINT32_MAX || !is_known(context, (uint32_t)value->bits))) {
            return sj_fail(error, SJ_ENOTFOUND, "a cost is of a function that was not sent");
        }
    }
    return SJ_OK;
}
