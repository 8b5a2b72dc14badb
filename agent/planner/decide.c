#include "agent/planner/exits.h"
#include "agent/planner/targets.h"

/* An unclear exit through a return or a jump with an unknown frame means that the unwind rules are
 * not exact; any other that the jump's targets are not known. */
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

void sj_decide_ranges(sj_module *module)
{
    for (size_t i = 0; i < module->range_count; i++) {
        const sj_code_range *range = &module->ranges[i];
        sj_code_range *function = &module->ranges[range->parent];
        const bool is_own_part = !range->is_cold || range->parent != i;
        if (is_own_part && function->skip == SJ_SKIP_NONE) {
            function->skip = (uint8_t)decide_range(module, range);
        }
        if (range->parent != i) {
            function->has_frame |= range->has_frame;
        }
    }
}
