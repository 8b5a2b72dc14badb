#include "agent/planner/builder.h"

/* Design notes. A return of one byte that branches land on, with code behind it that is entered,
 * too, has no room for a jump. But only its own byte needs to change: the opcode of a short jump,
 * whose distance is then the byte behind it as it is (instruction punning). So the place of the
 * island is given, and has to be free or make room. It lies in the same page as the return: pages
 * are written as a whole, and a jump without its island would lead into other code. */

enum { JUMP32_BYTES = 5, JUMP8_BYTES = 2, PAGE_SHIFT = 12 };

static bool is_same_page(const sj_module *module, uint32_t left, uint32_t right)
{
    return sj_module_address(module, left) >> PAGE_SHIFT ==
           sj_module_address(module, right) >> PAGE_SHIFT;
}

/* The byte behind must stay: it belongs to an instruction of the same function, which is no exit,
 * because those are changed themselves. */
static bool can_pun(const sj_builder *builder, const sj_piece *piece, uint32_t exit)
{
    const sj_module *module = builder->module;
    const sj_code *code = &module->codes[exit];
    return code->kind == SJ_CODE_RETURN && code->length == 1 &&
           exit + 1 < piece->first_code + piece->code_count && code[1].at == sj_code_end(code) &&
           !sj_bit_get(module->padding, code[1].at) && !sj_bit_get(module->claimed, code->at) &&
           !sj_bit_get(module->claimed, code[1].at) &&
           sj_leaving_code(builder, &code[1], sj_exit_of(module, piece, &code[1])) == NULL;
}

static bool find_place(const sj_module *module, const sj_code *code, uint32_t *island)
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

bool sj_take_pun(sj_builder *builder, const sj_piece *piece, uint32_t exit, sj_window *window,
                 uint32_t *island)
{
    const sj_module *module = builder->module;
    const sj_code *code = &module->codes[exit];
    if (!can_pun(builder, piece, exit) || !find_place(module, code, island)) {
        return false;
    }
    sj_claim_bytes(builder, code->at, JUMP8_BYTES);
    *window = (sj_window){.first = exit,
                          .last = exit,
                          .start = code->at,
                          .length = code->length,
                          .room = JUMP8_BYTES,
                          .is_pun = true};
    if (sj_free_padding(module, *island, JUMP32_BYTES) == JUMP32_BYTES) {
        sj_claim_bytes(builder, *island, JUMP32_BYTES);
        return true;
    }
    return sj_make_island_at(builder, *island);
}
