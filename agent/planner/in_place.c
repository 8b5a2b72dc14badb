#include "agent/planner/builder.h"

enum { JUMP32_BYTES = 5, JUMP_IF32_BYTES = 6, JUMP8_BYTES = 2, ISLAND_REACH_BYTES = 144 };

static bool has_call(const sj_code *codes, const sj_window *window)
{
    for (uint32_t i = window->first; i <= window->last; i++) {
        if (codes[i].kind == SJ_CODE_CALL || codes[i].kind == SJ_CODE_CALL_INDIRECT) {
            return true;
        }
    }
    return false;
}

/* The first place behind the window's own jump that no instruction starts at: a thread that stands
 * at an instruction of the window is then always inside of one of the two patches. */
static uint32_t island_in(const sj_code *codes, const sj_window *window)
{
    uint32_t at = window->start + JUMP32_BYTES;
    for (uint32_t i = window->first; i <= window->last; i++) {
        at += codes[i].at == at ? 1 : 0;
    }
    return at + JUMP32_BYTES <= window->start + window->length ? at : SJ_PIECE_NONE;
}

/* Code of other functions is moved without their exits and branches, which belong to their plans.
 */
static bool may_move_for_island(const sj_builder *builder, const sj_piece *piece,
                                const sj_window *window)
{
    const sj_code *codes = builder->module->codes;
    bool may = !has_call(codes, window);
    for (uint32_t i = window->first; i <= window->last; i++) {
        may = may && (piece->parent == builder->function || codes[i].kind == SJ_CODE_PLAIN ||
                      codes[i].kind == SJ_CODE_NOP);
    }
    return may;
}

static bool can_hold_island(const sj_builder *builder, const sj_piece *piece, uint32_t first,
                            uint32_t jump, sj_window *window)
{
    const sj_code *codes = builder->module->codes;
    for (uint32_t last = first; last < first + SJ_PATCH_MAX_BYTES; last++) {
        if (!sj_window_make(builder, piece, first, last, 1, window) ||
            !may_move_for_island(builder, piece, window)) {
            return false;
        }
        const uint32_t island = island_in(codes, window);
        if (window->length == window->room && island != SJ_PIECE_NONE) {
            const int64_t distance = (int64_t)island - jump - JUMP8_BYTES;
            return distance >= INT8_MIN && distance <= INT8_MAX;
        }
    }
    return false;
}

static bool make_island_in(sj_builder *builder, const sj_piece *piece, uint32_t jump,
                           uint32_t *island)
{
    const sj_module *module = builder->module;
    const uint32_t end = piece->first_code + piece->code_count;
    for (uint32_t i = piece->first_code; i < end; i++) {
        const int64_t distance = (int64_t)module->codes[i].at - jump;
        sj_window window;
        if (distance < INT8_MIN - SJ_PATCH_MAX_BYTES || distance > INT8_MAX ||
            !can_hold_island(builder, piece, i, jump, &window)) {
            continue;
        }
        *island = island_in(module->codes, &window);
        sj_claim_bytes(builder, window.start, window.length);
        const uint32_t stub = sj_emit_window(builder, piece, &window, false);
        window.room = *island - window.start;
        sj_patch_window(builder, &window, SJ_PIECE_NONE, stub);
        return true;
    }
    return false;
}

/* Where no padding is near, a run of code makes room: it moves to a stub, its first bytes jump
 * there, and the rest holds the jump for the short one. The function's own code comes first. */
static bool make_island(sj_builder *builder, const sj_piece *piece, uint32_t jump, uint32_t *island)
{
    const sj_module *module = builder->module;
    if (make_island_in(builder, piece, jump, island)) {
        return true;
    }
    const uint32_t low = jump > ISLAND_REACH_BYTES ? jump - ISLAND_REACH_BYTES : 0;
    uint32_t i = (uint32_t)(piece - module->pieces);
    while (i > 0 && module->pieces[i - 1].start + module->pieces[i - 1].size > low) {
        i--;
    }
    for (; builder->allows_others && i < module->piece_count &&
           module->pieces[i].start < jump + ISLAND_REACH_BYTES;
         i++) {
        const sj_piece *other = &module->pieces[i];
        if (other != piece && module->pieces[other->parent].skip == SJ_SKIP_NONE &&
            make_island_in(builder, other, jump, island)) {
            return true;
        }
    }
    return false;
}

/* Makes and claims a window: of five bytes, or of two with a jump in padding near by. */
static bool take_window(sj_builder *builder, const sj_piece *piece, uint32_t exit, bool is_head,
                        sj_window *window, uint32_t *island)
{
    *island = SJ_PIECE_NONE;
    bool found = is_head ? sj_window_head(builder, JUMP32_BYTES, window)
                         : sj_window_exit(builder, piece, exit, JUMP32_BYTES, window);
    if (!found && builder->allows_short) {
        const sj_skip reason = builder->reason;
        found = is_head ? sj_window_head(builder, JUMP8_BYTES, window)
                        : sj_window_exit(builder, piece, exit, JUMP8_BYTES, window);
        if (found) {
            /* First the window, so that the island does not take its padding. */
            sj_claim_bytes(builder, window->start, window->room);
            found = sj_find_island(builder, window->start, island) ||
                    make_island(builder, piece, window->start, island);
            builder->used_short = true;
        }
        builder->reason = reason;
        return found;
    }
    if (found) {
        sj_claim_bytes(builder, window->start, window->room);
    }
    return found;
}

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
    if (!take_window(builder, piece, exit, false, &window, &island)) {
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
        const sj_code *leaving = sj_leaving_code(builder, piece, code);
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
    if (!take_window(builder, function, 0, true, &head, &island)) {
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
