#include "agent/planner/builder.h"

/* Design notes. A function that calls nothing has no return address in its code, so a copy of it
 * elsewhere can be run without any unwinder noticing. The head leads to the copy, whose branches
 * stay in the copy and whose exits carry probes; a loop to the head enters behind the probe. */

enum { COPY_MAX_CODES = 1 << 14 };

static bool can_copy(const sj_builder *builder, const sj_piece *piece)
{
    const sj_module *module = builder->module;
    if (piece->has_call || piece->has_labels || piece->has_entries || piece->part_count > 0 ||
        piece->code_count == 0 || piece->code_count > COPY_MAX_CODES) {
        return false;
    }
    for (uint32_t i = 0; i < piece->code_count; i++) {
        const sj_code *code = &module->codes[piece->first_code + i];
        if (code->kind == SJ_CODE_PINNED || code->kind == SJ_CODE_BAD ||
            code->kind == SJ_CODE_BREAK ||
            (code->kind == SJ_CODE_JUMP_INDIRECT &&
             sj_exit_of(module, piece, code) != SJ_EXIT_LEAVES)) {
            return false;
        }
    }
    /* Padding may follow the last instruction that is reached. */
    uint32_t last = piece->first_code + piece->code_count - 1;
    while (last > piece->first_code && module->codes[last].kind == SJ_CODE_NOP) {
        last--;
    }
    return sj_code_is_final(&module->codes[last]);
}

static uint32_t label_of(const sj_piece *piece, int64_t target)
{
    return target <= (int64_t)piece->head ? 0 : (uint32_t)(target - piece->start);
}

static bool is_instruction(const sj_module *module, const sj_piece *piece, int64_t target)
{
    return target >= piece->start && target < (int64_t)piece->start + piece->size &&
           sj_code_at(module, target) != NULL;
}

static bool has_known_branches(const sj_module *module, const sj_piece *piece)
{
    for (uint32_t i = 0; i < piece->code_count; i++) {
        const sj_code *code = &module->codes[piece->first_code + i];
        const sj_exit exit = sj_exit_of(module, piece, code);
        if ((code->kind == SJ_CODE_JUMP || code->kind == SJ_CODE_JUMP_IF) &&
            exit != SJ_EXIT_LEAVES && !is_instruction(module, piece, sj_code_target(code))) {
            return false;
        }
    }
    return true;
}

static void emit_body_code(sj_builder *builder, const sj_piece *piece, const sj_code *code,
                           uint32_t *leave_stub)
{
    const sj_module *module = builder->module;
    const bool is_branch = code->kind == SJ_CODE_JUMP || code->kind == SJ_CODE_JUMP_IF;
    const sj_exit exit = sj_exit_of(module, piece, code);
    if (exit == SJ_EXIT_LEAVES && code->kind == SJ_CODE_JUMP_IF) {
        sj_emit_jump_if_stub(builder, sj_jump_condition(module, code), (*leave_stub)++);
    } else if (exit == SJ_EXIT_LEAVES) {
        sj_emit_exit(builder, code);
    } else if (is_branch) {
        sj_emit_to_label(builder, code, label_of(piece, sj_code_target(code)));
    } else {
        sj_emit_moved(builder, code);
    }
}

static uint32_t emit_body(sj_builder *builder, const sj_piece *piece)
{
    const sj_module *module = builder->module;
    const sj_code *first = module->codes + piece->first_code;
    const uint32_t head = piece->head;
    uint32_t leave_stub = (uint32_t)builder->stub_count;
    for (uint32_t i = 0; i < piece->code_count; i++) {
        if (first[i].kind == SJ_CODE_JUMP_IF &&
            sj_exit_of(module, piece, &first[i]) == SJ_EXIT_LEAVES) {
            (void)sj_emit_leave_stub(builder, &first[i], &first[i]);
        }
    }
    const uint32_t stub = sj_stub_begin(builder);
    sj_emit_enter(builder);
    sj_emit_label(builder, 0);
    for (uint32_t i = 0; i < piece->code_count; i++) {
        if (first[i].at < head) {
            continue;
        }
        if (first[i].at > head && sj_bit_get(module->targets, first[i].at)) {
            sj_emit_label(builder, label_of(piece, first[i].at));
        }
        emit_body_code(builder, piece, &first[i], &leave_stub);
    }
    sj_stub_end(builder);
    return stub;
}

bool sj_hook_by_copy(sj_builder *builder)
{
    const sj_module *module = builder->module;
    const sj_piece *piece = &module->pieces[builder->function];
    if (!can_copy(builder, piece) || !has_known_branches(module, piece)) {
        return false;
    }
    sj_window window;
    uint32_t island;
    if (!sj_take_window(builder, piece, 0, true, &window, &island)) {
        return false;
    }
    sj_patch_window(builder, &window, island, emit_body(builder, piece));
    return true;
}
