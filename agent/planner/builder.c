#include "agent/planner/builder.h"

#include "agent/planner/growable.h"
#include "agent/planner/machine.h"

enum { JUMP32_BYTES = 5, JUMP8_BYTES = 2, DISTANCE_BYTES = 4, SLOT_BYTES = 8 };

static void append_patch(sj_builder *builder, const sj_plan_patch *patch)
{
    if (builder->status == SJ_OK) {
        builder->status = sj_grow(&builder->patches, &builder->patch_capacity, builder->patch_count,
                                  1, sizeof(*patch));
    }
    if (builder->status == SJ_OK) {
        builder->patches[builder->patch_count] = *patch;
        builder->patches[builder->patch_count++].function = builder->function;
    }
}

/* Adds a patch of the text, whose offset is still that in the text. */
static void add_patch(sj_builder *builder, sj_plan_patch *patch)
{
    memcpy(patch->original, builder->module->text + patch->offset, patch->window);
    patch->offset = sj_module_address(builder->module, (int64_t)patch->offset);
    append_patch(builder, patch);
}

void sj_patch_window(sj_builder *builder, const sj_window *window, uint32_t island, uint32_t stub)
{
    sj_plan_patch patch = {.offset = window->start,
                           .stub = stub,
                           .kind = SJ_PATCH_JUMP32,
                           .bytes = JUMP32_BYTES,
                           .window = (uint8_t)window->room};
    if (island != SJ_PIECE_NONE) {
        sj_plan_patch jump = {.offset = island,
                              .stub = stub,
                              .kind = SJ_PATCH_JUMP32,
                              .bytes = JUMP32_BYTES,
                              .window = JUMP32_BYTES};
        add_patch(builder, &jump);
        patch.kind = SJ_PATCH_JUMP8;
        patch.bytes = window->is_pun ? 1 : JUMP8_BYTES;
        patch.via = (uint32_t)builder->patch_count - 1;
    }
    add_patch(builder, &patch);
}

void sj_patch_distance(sj_builder *builder, const sj_code *code, uint32_t stub)
{
    sj_plan_patch patch = {.offset = sj_code_end(code) - DISTANCE_BYTES,
                           .stub = stub,
                           .kind = SJ_PATCH_REL32,
                           .bytes = DISTANCE_BYTES,
                           .window = DISTANCE_BYTES};
    add_patch(builder, &patch);
}

void sj_patch_branch(sj_builder *builder, const sj_code *code, uint32_t stub)
{
    sj_plan_patch patch = {.offset = code->at,
                           .stub = stub,
                           .kind = SJ_PATCH_BRANCH26,
                           .bytes = code->length,
                           .window = code->length};
    add_patch(builder, &patch);
}

void sj_patch_slot(sj_builder *builder, uint64_t slot, uint32_t stub)
{
    const sj_plan_patch patch = {.offset = slot,
                                 .stub = stub,
                                 .kind = SJ_PATCH_SLOT,
                                 .bytes = SLOT_BYTES,
                                 .window = SLOT_BYTES};
    append_patch(builder, &patch);
}

bool sj_x86_64_hook(sj_builder *builder, sj_technique technique)
{
    return technique == SJ_TECHNIQUE_LEAF_COPY ? sj_hook_by_copy(builder)
                                               : sj_hook_in_place(builder);
}

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
    for (uint32_t i = 0; i < builder->module->piece_count && builder->status == SJ_OK; i++) {
        sj_plan_function *function = &builder->functions[i];
        if (builder->module->pieces[i].skip != SJ_SKIP_NONE || builder->module->pieces[i].is_cold ||
            function->technique != SJ_TECHNIQUE_NONE) {
            continue;
        }
        if (!try_technique(builder, i, technique, is_last) && technique == SJ_TECHNIQUE_INLINE) {
            function->skip = (uint8_t)builder->reason;
        }
    }
}

sj_status sj_builder_hook(sj_builder *builder)
{
    hook_all(builder, SJ_TECHNIQUE_INLINE, false);
    hook_all(builder, SJ_TECHNIQUE_SHORT, false);
    hook_all(builder, SJ_TECHNIQUE_LEAF_COPY, false);
    hook_all(builder, SJ_TECHNIQUE_SHORT, true);
    hook_all(builder, SJ_TECHNIQUE_LEAF_COPY, true);
    return builder->status;
}

sj_status sj_builder_sum(sj_builder *builder)
{
    for (size_t i = 0; i < builder->stub_count; i++) {
        if (builder->stubs[i].code_bytes > UINT32_MAX - builder->stub_code_bytes) {
            return SJ_ELIMIT;
        }
        builder->stub_code_bytes += builder->stubs[i].code_bytes;
    }
    return SJ_OK;
}

void sj_builder_free(sj_builder *builder)
{
    free(builder->functions);
    free(builder->patches);
    free(builder->stubs);
    free(builder->operations);
    free(builder->claims);
    *builder = (sj_builder){0};
}
