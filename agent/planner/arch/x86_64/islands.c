#include "agent/abi/page.h"
#include "agent/planner/arch/x86_64/x86_64.h"

/* Design notes. If there are no five bytes for a jump to a stub, two bytes can jump to a branch
 * island nearby, which contains the jump to the stub. The island lies in padding, or replaces code
 * that is moved to a stub.
 *
 * A return of one byte has no space for a jump if branches lead to it and to the code after it. Its
 * byte becomes the opcode of a short jump, whose distance is the next byte, which stays unchanged
 * (instruction punning). So the address of the island is fixed: it must be padding or code that can
 * be moved. The island lies in the same page as the return. Each page is written as a whole. A jump
 * that is written before its island would lead into other code. */

enum {
    JUMP32_BYTES = 5,
    JUMP8_BYTES = 2,
    JUMP8_REACH_BACK = 128,
    JUMP8_REACH_ON = 127,
    ISLAND_REACH_BYTES = 144
};

/* Claims five bytes of padding within reach of a short jump at `start`. Returns false if there are
 * none. */
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

/* Returns the first offset after the window's own jump at which no instruction starts, if five
 * bytes follow. So a thread at an instruction of the window is inside one of the two patches.
 * Returns SJ_CODE_RANGE_NONE if there is none. */
static uint32_t island_in(const sj_code *codes, const sj_window *window)
{
    uint32_t at = window->start + JUMP32_BYTES;
    for (uint32_t i = window->first; i <= window->last; i++) {
        at += codes[i].at == at ? 1 : 0;
    }
    return at + JUMP32_BYTES <= window->start + window->length ? at : SJ_CODE_RANGE_NONE;
}

/* True if the window may move to make space for an island. Of other functions, only plain
 * instructions may move, because their branches and exits may have patches of their own. */
static bool may_move_for_island(const sj_builder *builder, const sj_code_range *range,
                                const sj_window *window)
{
    const sj_code *codes = builder->module->codes;
    bool is_movable = !has_call(codes, window);
    for (uint32_t i = window->first; i <= window->last; i++) {
        is_movable = is_movable && (range->parent == builder->function ||
                                    codes[i].kind == SJ_CODE_PLAIN || codes[i].kind == SJ_CODE_NOP);
    }
    return is_movable;
}

/* Makes a window of code, from instruction `first` on, that can hold the island of a short jump at
 * `jump`. Returns false if there is none. */
static bool can_hold_island(const sj_builder *builder, const sj_code_range *range, uint32_t first,
                            uint32_t jump, sj_window *window)
{
    const sj_code *codes = builder->module->codes;
    for (uint32_t last = first; last < first + SJ_PATCH_MAX_BYTES; last++) {
        if (!sj_window_make(builder, range, first, last, 1, window) ||
            !may_move_for_island(builder, range, window)) {
            return false;
        }
        const uint32_t island = island_in(codes, window);
        if (window->length == window->space && island != SJ_CODE_RANGE_NONE) {
            const int64_t distance = (int64_t)island - jump - JUMP8_BYTES;
            return distance >= INT8_MIN && distance <= INT8_MAX;
        }
    }
    return false;
}

/* Moves the code of a window to a stub. The bytes from `island` on then hold the island. */
static void move_window(sj_builder *builder, const sj_code_range *range, sj_window *window,
                        uint32_t island)
{
    sj_claim_bytes(builder, window->start, window->length);
    const uint32_t stub = sj_emit_window(builder, range, window, false);
    window->space = island - window->start;
    sj_patch_window(builder, window, SJ_CODE_RANGE_NONE, stub);
}

/* Moves code of a range to make an island for a short jump at `jump`. */
static bool make_island_in(sj_builder *builder, const sj_code_range *range, uint32_t jump,
                           uint32_t *island)
{
    const sj_module *module = builder->module;
    const uint32_t end = range->first_code + range->code_count;
    for (uint32_t i = range->first_code; i < end; i++) {
        const int64_t distance = (int64_t)module->codes[i].at - jump;
        sj_window window;
        if (distance < INT8_MIN - SJ_PATCH_MAX_BYTES || distance > INT8_MAX ||
            !can_hold_island(builder, range, i, jump, &window)) {
            continue;
        }
        *island = island_in(module->codes, &window);
        move_window(builder, range, &window, *island);
        return true;
    }
    return false;
}

/* Makes an island where no padding is near: moves a run of code to a stub. The first bytes of the
 * run then jump to the stub, and its other bytes hold the island. Tries the function's own code
 * first. */
static bool make_island(sj_builder *builder, const sj_code_range *range, uint32_t jump,
                        uint32_t *island)
{
    const sj_module *module = builder->module;
    if (make_island_in(builder, range, jump, island)) {
        return true;
    }
    const uint32_t low = jump > ISLAND_REACH_BYTES ? jump - ISLAND_REACH_BYTES : 0;
    uint32_t i = (uint32_t)(range - module->ranges);
    while (i > 0 && module->ranges[i - 1].start + module->ranges[i - 1].size > low) {
        i--;
    }
    for (; builder->allows_others && i < module->range_count &&
           module->ranges[i].start < jump + ISLAND_REACH_BYTES;
         i++) {
        const sj_code_range *other = &module->ranges[i];
        if (other != range && module->ranges[other->parent].skip == SJ_SKIP_NONE &&
            make_island_in(builder, other, jump, island)) {
            return true;
        }
    }
    return false;
}

/* True if the window can hold an island at that offset, at which no instruction starts. */
static bool fits_island(const sj_code *codes, const sj_window *window, uint32_t island)
{
    for (uint32_t i = window->first; i <= window->last; i++) {
        if (codes[i].at == island) {
            return false;
        }
    }
    return window->start + JUMP32_BYTES <= island &&
           island + JUMP32_BYTES <= window->start + window->length;
}

/* Moves code to make an island at a fixed offset. */
static bool make_island_at(sj_builder *builder, uint32_t island)
{
    const sj_module *module = builder->module;
    const uint32_t index = sj_module_range_at(module, island);
    if (index == SJ_CODE_RANGE_NONE ||
        module->ranges[module->ranges[index].parent].skip != SJ_SKIP_NONE) {
        return false;
    }
    const sj_code_range *range = &module->ranges[index];
    const uint32_t end = range->first_code + range->code_count;
    for (uint32_t first = range->first_code; first < end; first++) {
        const sj_code *code = &module->codes[first];
        if (code->at + SJ_PATCH_MAX_BYTES < island + JUMP32_BYTES) {
            continue;
        }
        if (code->at + JUMP32_BYTES > island) {
            return false;
        }
        for (uint32_t last = first; last < first + SJ_PATCH_MAX_BYTES; last++) {
            sj_window window;
            if (!sj_window_make(builder, range, first, last, 1, &window) ||
                !may_move_for_island(builder, range, &window)) {
                break;
            }
            if (window.length == window.space && fits_island(module->codes, &window, island)) {
                move_window(builder, range, &window, island);
                return true;
            }
        }
    }
    return false;
}

static bool is_same_page(const sj_module *module, uint32_t left, uint32_t right)
{
    return sj_module_address(module, left) / SJ_PAGE_LEAST_BYTES ==
           sj_module_address(module, right) / SJ_PAGE_LEAST_BYTES;
}

/* True if an exit can become the opcode of a short jump. The next byte must stay unchanged, so it
 * must belong to an instruction of the same function that is not an exit. */
static bool can_pun(const sj_builder *builder, const sj_code_range *range, uint32_t exit)
{
    const sj_module *module = builder->module;
    const sj_code *code = &module->codes[exit];
    return code->kind == SJ_CODE_RETURN && code->length == 1 &&
           exit + 1 < range->first_code + range->code_count && code[1].at == sj_code_end(code) &&
           !sj_bit_get(module->padding, code[1].at) && !sj_bit_get(module->claimed, code->at) &&
           !sj_bit_get(module->claimed, code[1].at) &&
           sj_leaving_code(builder, &code[1], sj_exit_of(module, range, &code[1])) == NULL;
}

/* Computes the island of a punned jump. Returns false if it is outside of the text or the page, or
 * overlaps the jump. */
static bool find_pun_island(const sj_module *module, const sj_code *code, uint32_t *island)
{
    const int8_t distance = (int8_t)module->text[code->at + 1];
    const int64_t at = (int64_t)code->at + JUMP8_BYTES + distance;
    if (at < 0 || at + JUMP32_BYTES > (int64_t)module->text_bytes ||
        (at < (int64_t)code->at + JUMP8_BYTES && at + JUMP32_BYTES > (int64_t)code->at)) {
        return false;
    }
    *island = (uint32_t)at;
    return is_same_page(module, code->at, *island) &&
           is_same_page(module, code->at, *island + JUMP32_BYTES - 1);
}

/* Claims a punned jump and its island. */
static bool claim_pun(sj_builder *builder, const sj_code_range *range, uint32_t exit,
                      sj_window *window, uint32_t *island)
{
    const sj_module *module = builder->module;
    const sj_code *code = &module->codes[exit];
    if (!can_pun(builder, range, exit) || !find_pun_island(module, code, island)) {
        return false;
    }
    sj_claim_bytes(builder, code->at, JUMP8_BYTES);
    *window = (sj_window){.first = exit,
                          .last = exit,
                          .start = code->at,
                          .length = code->length,
                          .space = JUMP8_BYTES,
                          .is_pun = true};
    if (sj_free_padding(module, *island, JUMP32_BYTES) == JUMP32_BYTES) {
        sj_claim_bytes(builder, *island, JUMP32_BYTES);
        return true;
    }
    return make_island_at(builder, *island);
}

bool sj_claim_window(sj_builder *builder, const sj_code_range *range, uint32_t exit,
                     bool is_at_entry, sj_window *window, uint32_t *island)
{
    *island = SJ_CODE_RANGE_NONE;
    bool found = is_at_entry ? sj_window_entry(builder, JUMP32_BYTES, window)
                             : sj_window_exit(builder, range, exit, JUMP32_BYTES, window);
    if (!found && builder->allows_short) {
        const sj_skip reason = builder->reason;
        found = is_at_entry ? sj_window_entry(builder, JUMP8_BYTES, window)
                            : sj_window_exit(builder, range, exit, JUMP8_BYTES, window);
        if (found) {
            /* Claims the window first, so that the island does not use the window's padding. */
            sj_claim_bytes(builder, window->start, window->space);
            found = find_island(builder, window->start, island) ||
                    make_island(builder, range, window->start, island);
        }
        if (!found && !is_at_entry && builder->allows_others) {
            found = claim_pun(builder, range, exit, window, island);
        }
        builder->reason = reason;
        return found;
    }
    if (found) {
        sj_claim_bytes(builder, window->start, window->space);
    }
    return found;
}
