#include "agent/planner/arch/x86_64/x86_64.h"

enum { JUMP32_BYTES = 5, JUMP_IF32_BYTES = 6 };

/* True for jumps with a 32-bit distance. */
static bool has_long_distance(const sj_code *code)
{
    return (code->kind == SJ_CODE_JUMP && code->length >= JUMP32_BYTES) ||
           (code->kind == SJ_CODE_JUMP_IF && code->length >= JUMP_IF32_BYTES);
}

/* Patches an exit. `leaving` is the exit itself, or the exit that it jumps to (sj_leaving_code). */
static bool hook_exit(sj_builder *builder, const sj_code_range *range, uint32_t exit,
                      const sj_code *leaving)
{
    const sj_code *code = &builder->module->codes[exit];
    if (has_long_distance(code)) {
        sj_claim_bytes(builder, code->at, code->length);
        sj_patch_distance(builder, code, sj_emit_leave_stub(builder, code, leaving));
        return true;
    }
    sj_window window;
    uint32_t island;
    if (!sj_claim_window(builder, range, exit, false, &window, &island)) {
        return false;
    }
    sj_patch_window(builder, &window, island, sj_emit_window(builder, range, &window, false));
    return true;
}

/* True if a folded exit need not be patched: no instruction falls through to it, not even through
 * padding. */
static bool is_dead(const sj_builder *builder, const sj_code_range *range, uint32_t exit)
{
    const sj_module *module = builder->module;
    uint32_t before = exit;
    while (before > range->first_code &&
           sj_bit_get(module->padding, module->codes[before - 1].at)) {
        before--;
    }
    return before > range->first_code && sj_code_is_final(&module->codes[before - 1]) &&
           sj_is_folded(builder, &module->codes[exit]);
}

/* Patches the exits of a range. Skips exits in earlier windows, which are patched already. */
static bool hook_exits(sj_builder *builder, const sj_code_range *range)
{
    const sj_module *module = builder->module;
    for (uint32_t i = range->first_code; i < range->first_code + range->code_count; i++) {
        const sj_code *code = &module->codes[i];
        if (code->kind < SJ_CODE_JUMP || code->kind > SJ_CODE_PINNED) {
            continue;
        }
        const sj_exit exit = sj_exit_of(module, range, code);
        if (exit == SJ_EXIT_TO_ENTRY) {
            builder->reason = SJ_SKIP_HEAD_LOOP;
            return false;
        }
        const sj_code *leaving = sj_leaving_code(builder, code, exit);
        if (leaving != NULL && !sj_bit_get(module->claimed, code->at) &&
            !is_dead(builder, range, i) && !hook_exit(builder, range, i, leaving)) {
            return false;
        }
    }
    return true;
}

bool sj_hook_in_place(sj_builder *builder)
{
    const sj_module *module = builder->module;
    const sj_code_range *function = &module->ranges[builder->function];
    sj_window entry;
    uint32_t island;
    if (function->is_arm) {
        builder->reason = SJ_SKIP_HEAD_LOOP;
        return false;
    }
    if (!sj_claim_window(builder, function, 0, true, &entry, &island)) {
        return false;
    }
    for (uint32_t i = builder->function; i != SJ_CODE_RANGE_NONE; i = module->ranges[i].next_part) {
        if (!hook_exits(builder, &module->ranges[i])) {
            return false;
        }
    }
    sj_patch_window(builder, &entry, island, sj_emit_window(builder, function, &entry, true));
    return true;
}
