#include "agent/planner/exits.h"
#include "agent/planner/pieces.h"
#include "agent/planner/targets.h"

#include <stdlib.h>

/* Returns the reason to exclude the function of a range, or SJ_SKIP_NONE. A return that cannot be
 * classified shows that the unwind rules are not exact. Any other jump that cannot be classified
 * has unknown targets. */
static sj_skip decide_range(const sj_module *module, const sj_code_range *range)
{
    if (range->is_undecodable) {
        return SJ_SKIP_UNDECODABLE;
    }
    for (uint32_t i = 0; i < range->code_count; i++) {
        const sj_code *code = &module->codes[range->first_code + i];
        if (code->kind >= SJ_CODE_JUMP && code->kind <= SJ_CODE_PINNED &&
            sj_exit_of(module, range, code) == SJ_EXIT_UNKNOWN) {
            return code->kind == SJ_CODE_RETURN ? SJ_SKIP_NO_CFI : SJ_SKIP_UNRESOLVED_JUMP;
        }
    }
    return SJ_SKIP_NONE;
}

typedef struct decision {
    const sj_module *module;
    uint8_t *skips; /* sj_skip of each range */
    uint32_t pieces;
} decision;

static sj_status decide_piece(void *context, uint32_t piece)
{
    const decision *work = context;
    const sj_module *module = work->module;
    const size_t end = module->range_count * (piece + 1) / work->pieces;
    for (size_t i = module->range_count * piece / work->pieces; i < end; i++) {
        const sj_code_range *range = &module->ranges[i];
        const bool is_own_part = !range->is_cold || range->parent != i;
        if (is_own_part && module->ranges[range->parent].skip == SJ_SKIP_NONE) {
            work->skips[i] = (uint8_t)decide_range(module, range);
        }
    }
    return SJ_OK;
}

sj_status sj_decide_ranges(sj_module *module)
{
    decision work = {.module = module,
                     .skips = calloc(module->range_count + 1, 1),
                     .pieces = sj_pieces_count(module->threads)};
    if (work.skips == NULL) {
        return SJ_ENOMEM;
    }
    const sj_status status = sj_pieces_run(module->threads, work.pieces, decide_piece, &work);
    for (size_t i = 0; i < module->range_count; i++) {
        const sj_code_range *range = &module->ranges[i];
        sj_code_range *function = &module->ranges[range->parent];
        if (function->skip == SJ_SKIP_NONE) {
            function->skip = work.skips[i];
        }
        if (range->parent != i) {
            function->has_frame |= range->has_frame;
        }
    }
    free(work.skips);
    return status;
}
