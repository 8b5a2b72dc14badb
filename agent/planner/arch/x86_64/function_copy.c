#include "agent/planner/arch/x86_64/x86_64.h"

/* Design notes. No return address leads into a function without calls. So no unwinder finds a copy
 * of it, unless one of its own instructions throws. The entry jumps to the copy. Branches of the
 * copy stay in the copy, and its exits have probes. A loop to the entry continues after the entry's
 * probe. */

enum { COPY_MAX_CODES = 1 << 14 };

/* True if all instructions of the function can run elsewhere, and if no call, label or landing pad
 * leads into it. */
static bool can_copy(const sj_builder *builder, const sj_code_range *range)
{
    const sj_module *module = builder->module;
    const bool has_landing_pads = range->frame != NULL && range->frame->landing != 0;
    if (range->has_call || range->has_labels || range->has_entries || range->part_count > 0 ||
        has_landing_pads || range->code_count == 0 || range->code_count > COPY_MAX_CODES) {
        return false;
    }
    for (uint32_t i = 0; i < range->code_count; i++) {
        const sj_code *code = &module->codes[range->first_code + i];
        if (code->kind == SJ_CODE_PINNED || code->kind == SJ_CODE_BAD ||
            code->kind == SJ_CODE_BREAK ||
            (code->kind == SJ_CODE_JUMP_INDIRECT &&
             sj_exit_of(module, range, code) != SJ_EXIT_LEAVES)) {
            return false;
        }
    }
    /* Padding may follow the last instruction. */
    uint32_t last = range->first_code + range->code_count - 1;
    while (last > range->first_code && module->codes[last].kind == SJ_CODE_NOP) {
        last--;
    }
    return sj_code_is_final(&module->codes[last]);
}

/* Returns the number of the label of a target: 0 is the entry, after its probe. */
static uint32_t label_of(const sj_code_range *range, int64_t target)
{
    return target <= (int64_t)range->entry ? 0 : (uint32_t)(target - range->start);
}

static bool is_instruction(const sj_module *module, const sj_code_range *range, int64_t target)
{
    return target >= range->start && target < (int64_t)range->start + range->size &&
           sj_code_at(module, target) != NULL;
}

/* True if all branches that stay in the function lead to instructions. */
static bool has_known_branches(const sj_module *module, const sj_code_range *range)
{
    for (uint32_t i = 0; i < range->code_count; i++) {
        const sj_code *code = &module->codes[range->first_code + i];
        const sj_exit exit = sj_exit_of(module, range, code);
        if ((code->kind == SJ_CODE_JUMP || code->kind == SJ_CODE_JUMP_IF) &&
            exit != SJ_EXIT_LEAVES && !is_instruction(module, range, sj_code_target(code))) {
            return false;
        }
    }
    return true;
}

static void emit_copied_code(sj_builder *builder, const sj_code_range *range, const sj_code *code,
                             uint32_t *leave_stub)
{
    const sj_module *module = builder->module;
    const bool is_branch = code->kind == SJ_CODE_JUMP || code->kind == SJ_CODE_JUMP_IF;
    const sj_exit exit = sj_exit_of(module, range, code);
    if (exit == SJ_EXIT_LEAVES && code->kind == SJ_CODE_JUMP_IF) {
        sj_emit_place(builder, code->at);
        sj_emit_jump_if_stub(builder, sj_x86_64_jump_condition(module, code), (*leave_stub)++);
    } else if (exit == SJ_EXIT_LEAVES) {
        sj_emit_exit(builder, code);
    } else if (is_branch) {
        sj_emit_to_label(builder, code, label_of(range, sj_code_target(code)));
    } else {
        sj_emit_moved(builder, code);
    }
}

/* Emits the stub with the copy, and before it a stub for each conditional exit. Returns the stub's
 * number. */
static uint32_t emit_copy_of_function(sj_builder *builder, const sj_code_range *range)
{
    const sj_module *module = builder->module;
    const sj_code *first = module->codes + range->first_code;
    const uint32_t entry = range->entry;
    uint32_t leave_stub = (uint32_t)builder->stub_count;
    for (uint32_t i = 0; i < range->code_count; i++) {
        if (first[i].kind == SJ_CODE_JUMP_IF &&
            sj_exit_of(module, range, &first[i]) == SJ_EXIT_LEAVES) {
            (void)sj_emit_leave_stub(builder, &first[i], &first[i]);
        }
    }
    const uint32_t stub = sj_stub_begin(builder);
    sj_emit_enter(builder);
    sj_emit_label(builder, 0);
    for (uint32_t i = 0; i < range->code_count; i++) {
        if (first[i].at < entry) {
            continue;
        }
        if (first[i].at > entry && sj_bit_get(module->targets, first[i].at)) {
            sj_emit_label(builder, label_of(range, first[i].at));
        }
        emit_copied_code(builder, range, &first[i], &leave_stub);
    }
    sj_stub_end(builder);
    return stub;
}

bool sj_hook_by_copy(sj_builder *builder)
{
    const sj_module *module = builder->module;
    const sj_code_range *range = &module->ranges[builder->function];
    if (!can_copy(builder, range) || !has_known_branches(module, range)) {
        return false;
    }
    sj_window window;
    uint32_t island;
    if (!sj_claim_window(builder, range, 0, true, &window, &island)) {
        return false;
    }
    sj_patch_window(builder, &window, island, emit_copy_of_function(builder, range));
    return true;
}
