#include "agent/planner/builder.h"

#include "agent/planner/fingerprint.h"
#include "agent/planner/machine.h"
#include "proto/base/array.h"

#include <stdlib.h>

enum { JUMP32_BYTES = 5, JUMP8_BYTES = 2, DISTANCE_BYTES = 4, SLOT_BYTES = 8 };

static void append_patch(sj_builder *builder, const sj_plan_patch *patch)
{
    if (builder->status == SJ_OK) {
        builder->status = sj_array_reserve(&builder->patches, &builder->patch_capacity,
                                           builder->patch_count, 1, sizeof(*patch));
    }
    if (builder->status == SJ_OK) {
        builder->patches[builder->patch_count] = *patch;
        builder->patches[builder->patch_count++].function = builder->function;
    }
}

/* Appends a patch of the text and saves the original bytes of its window. Converts its offset from
 * the start of the text to the base of the module. */
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
                           .window = (uint8_t)window->space};
    if (island != SJ_CODE_RANGE_NONE) {
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

void sj_claim_bytes(sj_builder *builder, uint32_t start, uint32_t bytes)
{
    if (builder->status == SJ_OK) {
        builder->status = sj_array_reserve(&builder->claims, &builder->claim_capacity,
                                           builder->claim_count, 1, sizeof(*builder->claims));
    }
    if (builder->status != SJ_OK) {
        return;
    }
    builder->claims[builder->claim_count++] = (sj_claim){.start = start, .bytes = bytes};
    for (uint32_t i = 0; i < bytes; i++) {
        sj_bit_mark(builder->module->claimed, start + i);
    }
}

void sj_claims_give_up(sj_builder *builder)
{
    for (size_t i = 0; i < builder->claim_count; i++) {
        const sj_claim *claim = &builder->claims[i];
        for (uint32_t k = 0; k < claim->bytes; k++) {
            sj_bit_unmark(builder->module->claimed, claim->start + k);
        }
    }
    builder->claim_count = 0;
}

sj_status sj_builder_start(sj_builder *builder)
{
    const sj_module *module = builder->module;
    builder->functions = calloc(module->range_count + 1, sizeof(*builder->functions));
    uint64_t *fingerprints = calloc(module->range_count + 1, sizeof(*fingerprints));
    if (builder->functions == NULL || fingerprints == NULL) {
        free(fingerprints);
        return SJ_ENOMEM;
    }
    const sj_status status = sj_fingerprints_of(module, fingerprints);
    for (size_t i = 0; i < module->range_count && status == SJ_OK; i++) {
        const sj_code_range *range = &module->ranges[i];
        sj_plan_function *function = &builder->functions[i];
        function->offset = sj_module_address(module, range->start);
        function->size = range->size;
        function->source = range->source;
        function->receiver = range->receiver;
        function->fingerprint = fingerprints[i];
        function->skip = range->is_cold ? (uint8_t)SJ_SKIP_COLD_PART : range->skip;
    }
    free(fingerprints);
    return status;
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
    free(builder->uses);
    free(builder->claims);
    *builder = (sj_builder){0};
}
