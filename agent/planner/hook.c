#include "agent/planner/builder.h"
#include "agent/planner/machine.h"
#include "agent/planner/pieces.h"
#include "proto/base/progress.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Tries to hook a function. If that fails, removes the patches and stubs that the attempt added,
 * and returns false. */
static bool try_technique(sj_builder *builder, uint32_t function, sj_technique technique,
                          bool is_last)
{
    const sj_builder before = *builder; /* its counts are restored if the attempt fails */
    builder->function = function;
    builder->claim_count = 0;
    builder->allows_short = technique != SJ_TECHNIQUE_INLINE;
    builder->folds_exits = is_last && technique == SJ_TECHNIQUE_SHORT;
    builder->allows_others = is_last;
    const bool is_hooked = builder->module->machine->hook(builder, technique);
    const size_t patch_count = builder->patch_count - before.patch_count;
    sj_plan_function *result = &builder->functions[function];
    if (is_hooked && builder->status == SJ_OK && patch_count <= UINT16_MAX) {
        result->technique = (uint8_t)technique;
        result->skip = SJ_SKIP_NONE;
        result->first_patch = (uint32_t)before.patch_count;
        result->patch_count = (uint16_t)patch_count;
        return true;
    }
    sj_claims_give_up(builder);
    builder->patch_count = before.patch_count;
    builder->stub_count = before.stub_count;
    builder->operations_bytes = before.operations_bytes;
    builder->use_count = before.use_count;
    return false;
}

/* Tries a technique on a function that is wanted and not hooked yet. */
static void hook_function(sj_builder *builder, uint32_t index, sj_technique technique, bool is_last)
{
    const sj_code_range *range = &builder->module->ranges[index];
    sj_plan_function *function = &builder->functions[index];
    if (range->skip == SJ_SKIP_NONE && !range->is_cold &&
        function->technique == SJ_TECHNIQUE_NONE &&
        !try_technique(builder, index, technique, is_last) && technique == SJ_TECHNIQUE_INLINE) {
        function->skip = (uint8_t)builder->reason;
    }
}

static void hook_all(sj_builder *builder, sj_technique technique, bool is_last)
{
    for (uint32_t i = 0; i < builder->module->range_count && builder->status == SJ_OK; i++) {
        hook_function(builder, i, technique, is_last);
    }
}

typedef struct hook_piece {
    sj_builder builder; /* shares the array of functions; has its own patches and stubs */
    uint32_t first;
    uint32_t last; /* one past the last function */
} hook_piece;

typedef struct hook_work {
    hook_piece *pieces;
    sj_progress_work progress;
    _Atomic uint64_t done; /* number of functions that were tried */
} hook_work;

static sj_status hook_functions_of(void *context, uint32_t number)
{
    hook_work *work = context;
    hook_piece *piece = &work->pieces[number];
    sj_builder *builder = &piece->builder;
    for (uint32_t i = piece->first; i < piece->last && builder->status == SJ_OK; i++) {
        hook_function(builder, i, SJ_TECHNIQUE_INLINE, false);
        sj_progress_reach(work->progress,
                          1 + atomic_fetch_add_explicit(&work->done, 1, memory_order_relaxed));
    }
    return builder->status;
}

static void divide_functions(const sj_builder *builder, hook_piece *pieces, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const size_t ranges = builder->module->range_count;
        pieces[i] =
            (hook_piece){.builder = {.module = builder->module, .functions = builder->functions},
                         .first = (uint32_t)(ranges * i / count),
                         .last = (uint32_t)(ranges * (i + 1) / count)};
    }
}

/* Hooks the functions whose code has enough space, in pieces on several threads. Each function
 * claims only bytes of its own code and of the padding directly after it. So the result does not
 * depend on the order. */
static sj_status hook_inline(sj_builder *builder)
{
    const sj_module *module = builder->module;
    const uint32_t count = sj_pieces_count(module->threads);
    hook_work work = {.pieces = calloc(count, sizeof(*work.pieces)),
                      .progress = sj_progress_begin(module->range_count)};
    sj_status status = SJ_ENOMEM;
    if (work.pieces != NULL) {
        divide_functions(builder, work.pieces, count);
        status = sj_pieces_run(module->threads, count, hook_functions_of, &work);
    }
    for (uint32_t i = 0; i < count && work.pieces != NULL; i++) {
        hook_piece *piece = &work.pieces[i];
        if (status == SJ_OK) {
            status = sj_builder_append(builder, &piece->builder, piece->first, piece->last);
        }
        piece->builder.functions = NULL; /* `builder` owns the functions */
        sj_builder_free(&piece->builder);
    }
    free(work.pieces);
    sj_progress_end(work.progress);
    return status;
}

/* First hooks all functions that need only their own bytes, so that the other techniques use only
 * padding that is not needed. Lets functions use bytes of other functions (`is_last`) only after
 * all other attempts. */
sj_status sj_builder_hook(sj_builder *builder)
{
    builder->status = hook_inline(builder);
    hook_all(builder, SJ_TECHNIQUE_SHORT, false);
    if (builder->module->is_generated) {
        return builder
            ->status; /* the other techniques move code whose address the runtime may know */
    }
    hook_all(builder, SJ_TECHNIQUE_LEAF_COPY, false);
    hook_all(builder, SJ_TECHNIQUE_SHORT, true);
    hook_all(builder, SJ_TECHNIQUE_LEAF_COPY, true);
    return builder->status;
}
