#include "agent/planner/builder.h"
#include "agent/planner/machine.h"
#include "proto/base/progress.h"

static bool try_technique(sj_builder *builder, uint32_t function, sj_technique technique,
                          bool is_last)
{
    const size_t patch_count = builder->patch_count;
    const size_t stub_count = builder->stub_count;
    const size_t operations_bytes = builder->operations_bytes;
    builder->function = function;
    builder->claim_count = 0;
    builder->allows_short = technique != SJ_TECHNIQUE_INLINE;
    builder->folds_exits = is_last && technique == SJ_TECHNIQUE_SHORT;
    builder->allows_others = is_last;
    const bool is_hooked = builder->module->machine->hook(builder, technique);
    sj_plan_function *result = &builder->functions[function];
    if (is_hooked && builder->status == SJ_OK && builder->patch_count - patch_count <= UINT16_MAX) {
        result->technique = (uint8_t)technique;
        result->skip = SJ_SKIP_NONE;
        result->first_patch = (uint32_t)patch_count;
        result->patch_count = (uint16_t)(builder->patch_count - patch_count);
        return true;
    }
    for (size_t i = 0; i < builder->claim_count; i++) {
        const sj_claim *claim = &builder->claims[i];
        for (uint32_t k = 0; k < claim->bytes; k++) {
            sj_bit_clear(builder->module->claimed, claim->start + k);
        }
    }
    builder->patch_count = patch_count;
    builder->stub_count = stub_count;
    builder->operations_bytes = operations_bytes;
    return false;
}

/* Functions that the first technique takes get their bytes before padding is given away, and all
 * others before one may use bytes of another (`is_last`). */
static void hook_all(sj_builder *builder, sj_technique technique, bool is_last)
{
    const sj_progress_work work = technique == SJ_TECHNIQUE_INLINE /* most of the time */
                                      ? sj_progress_begin(builder->module->range_count)
                                      : 0;
    for (uint32_t i = 0; i < builder->module->range_count && builder->status == SJ_OK; i++) {
        sj_plan_function *function = &builder->functions[i];
        sj_progress_step(work);
        if (builder->module->ranges[i].skip != SJ_SKIP_NONE || builder->module->ranges[i].is_cold ||
            function->technique != SJ_TECHNIQUE_NONE) {
            continue;
        }
        if (!try_technique(builder, i, technique, is_last) && technique == SJ_TECHNIQUE_INLINE) {
            function->skip = (uint8_t)builder->reason;
        }
    }
    sj_progress_end(work);
}

sj_status sj_builder_hook(sj_builder *builder)
{
    hook_all(builder, SJ_TECHNIQUE_INLINE, false);
    hook_all(builder, SJ_TECHNIQUE_SHORT, false);
    if (builder->module->is_generated) {
        return builder->status; /* its code stays where its runtime knows it */
    }
    hook_all(builder, SJ_TECHNIQUE_LEAF_COPY, false);
    hook_all(builder, SJ_TECHNIQUE_SHORT, true);
    hook_all(builder, SJ_TECHNIQUE_LEAF_COPY, true);
    return builder->status;
}
