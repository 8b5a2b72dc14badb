#include "agent/planner/builder.h"

enum { JUMP32_BYTES = 5, JUMP_IF32_BYTES = 6 };

static bool has_distance(const sj_code *code)
{
    return (code->kind == SJ_CODE_JUMP && code->length >= JUMP32_BYTES) ||
           (code->kind == SJ_CODE_JUMP_IF && code->length >= JUMP_IF32_BYTES);
}

static bool hook_exit(sj_builder *builder, const sj_piece *piece, uint32_t exit,
                      const sj_code *leaving)
{
    const sj_code *code = &builder->module->codes[exit];
    if (has_distance(code)) {
        sj_claim_bytes(builder, code->at, code->length);
        sj_patch_distance(builder, code, sj_emit_leave_stub(builder, code, leaving));
        return true;
    }
    sj_window window;
    uint32_t island;
    if (!sj_take_window(builder, piece, exit, false, &window, &island)) {
        return false;
    }
    sj_patch_window(builder, &window, island, sj_emit_window(builder, piece, &window, false));
    return true;
}

/* A folded exit that nothing falls into, not through padding either, is never reached any more. */
static bool is_dead(const sj_builder *builder, const sj_piece *piece, uint32_t exit)
{
    const sj_module *module = builder->module;
    uint32_t before = exit;
    while (before > piece->first_code &&
           sj_bit_get(module->padding, module->codes[before - 1].at)) {
        before--;
    }
    return before > piece->first_code && sj_code_is_final(&module->codes[before - 1]) &&
           sj_is_folded(builder, &module->codes[exit]);
}

/* Exits that lie in an earlier window were emitted with it. */
static bool hook_exits(sj_builder *builder, const sj_piece *piece)
{
    const sj_module *module = builder->module;
    for (uint32_t i = piece->first_code; i < piece->first_code + piece->code_count; i++) {
        const sj_code *code = &module->codes[i];
        if (code->kind < SJ_CODE_JUMP || code->kind > SJ_CODE_PINNED) {
            continue;
        }
        const sj_exit exit = sj_exit_of(module, piece, code);
        if (exit == SJ_EXIT_TO_HEAD) {
            builder->reason = SJ_SKIP_HEAD_LOOP;
            return false;
        }
        const sj_code *leaving = sj_leaving_code(builder, code, exit);
        if (leaving != NULL && !sj_bit_get(module->claimed, code->at) &&
            !is_dead(builder, piece, i) && !hook_exit(builder, piece, i, leaving)) {
            return false;
        }
    }
    return true;
}

bool sj_hook_in_place(sj_builder *builder)
{
    const sj_module *module = builder->module;
    const sj_piece *function = &module->pieces[builder->function];
    sj_window head;
    uint32_t island;
    if (!sj_take_window(builder, function, 0, true, &head, &island)) {
        return false;
    }
    for (uint32_t i = builder->function; i != SJ_PIECE_NONE; i = module->pieces[i].next_part) {
        if (!hook_exits(builder, &module->pieces[i])) {
            return false;
        }
    }
    sj_patch_window(builder, &head, island, sj_emit_window(builder, function, &head, true));
    return true;
}
