#include "agent/planner/builder.h"

/* Design notes. Where five bytes are not free for a jump to a stub, two lead to an island near by
 * that holds it: in padding, else where code makes room. */

enum {
    JUMP32_BYTES = 5,
    JUMP8_BYTES = 2,
    JUMP8_REACH_BACK = 128,
    JUMP8_REACH_ON = 127,
    ISLAND_REACH_BYTES = 144
};

/* Claims five bytes of padding that a short jump at `start` reaches. */
static bool find_island(sj_builder *builder, uint32_t start, uint32_t *island)
{
    const sj_module *module = builder->module;
    const int64_t from = (int64_t)start + JUMP8_BYTES;
    int64_t at = from - JUMP8_REACH_BACK;
    at = at < 0 ? 0 : at;
    while (at <= from + JUMP8_REACH_ON && at + JUMP32_BYTES <= (int64_t)module->text_bytes) {
        const uint32_t count = sj_free_padding(module, (uint32_t)at, JUMP32_BYTES);
        if (count == JUMP32_BYTES) {
            *island = (uint32_t)at;
            sj_claim_bytes(builder, *island, JUMP32_BYTES);
            return true;
        }
        at += count + 1;
    }
    return false;
}

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

/* make_room moves a window of code whose rest holds the island. */
static void make_room(sj_builder *builder, const sj_piece *piece, sj_window *window,
                      uint32_t island)
{
    sj_claim_bytes(builder, window->start, window->length);
    const uint32_t stub = sj_emit_window(builder, piece, window, false);
    window->room = island - window->start;
    sj_patch_window(builder, window, SJ_PIECE_NONE, stub);
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
        make_room(builder, piece, &window, *island);
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

static bool is_around(const sj_code *codes, const sj_window *window, uint32_t island)
{
    for (uint32_t i = window->first; i <= window->last; i++) {
        if (codes[i].at == island) {
            return false;
        }
    }
    return window->start + JUMP32_BYTES <= island &&
           island + JUMP32_BYTES <= window->start + window->length;
}

bool sj_make_island_at(sj_builder *builder, uint32_t island)
{
    const sj_module *module = builder->module;
    const uint32_t index = sj_module_piece_at(module, island);
    if (index == SJ_PIECE_NONE ||
        module->pieces[module->pieces[index].parent].skip != SJ_SKIP_NONE) {
        return false;
    }
    const sj_piece *piece = &module->pieces[index];
    const uint32_t end = piece->first_code + piece->code_count;
    for (uint32_t first = piece->first_code; first < end; first++) {
        const sj_code *code = &module->codes[first];
        if (code->at + SJ_PATCH_MAX_BYTES < island + JUMP32_BYTES) {
            continue;
        }
        if (code->at + JUMP32_BYTES > island) {
            return false;
        }
        for (uint32_t last = first; last < first + SJ_PATCH_MAX_BYTES; last++) {
            sj_window window;
            if (!sj_window_make(builder, piece, first, last, 1, &window) ||
                !may_move_for_island(builder, piece, &window)) {
                break;
            }
            if (window.length == window.room && is_around(module->codes, &window, island)) {
                make_room(builder, piece, &window, island);
                return true;
            }
        }
    }
    return false;
}

bool sj_take_window(sj_builder *builder, const sj_piece *piece, uint32_t exit, bool is_head,
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
            found = find_island(builder, window->start, island) ||
                    make_island(builder, piece, window->start, island);
        }
        if (!found && !is_head && builder->allows_others) {
            found = sj_take_pun(builder, piece, exit, window, island);
        }
        builder->reason = reason;
        return found;
    }
    if (found) {
        sj_claim_bytes(builder, window->start, window->room);
    }
    return found;
}
