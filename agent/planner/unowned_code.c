#include "agent/planner/flags.h"

#include "agent/planner/exits.h"
#include "proto/base/array.h"

/* Design notes. Code without symbols and unwind tables (hand-written code, start files, linkage
 * tables) is not in a range. But it calls functions and is called. So the text between two ranges
 * is disassembled, too. Data there looks like invalid code. */

/* True for a zero byte that is filler between sections or functions. A decoder would read zeros as
 * instructions of two bytes: an uneven number of zeros would consume the next byte. */
static bool is_zero_filler(const sj_module *module, uint32_t at)
{
    enum { ALIGNMENT = 16 };
    const bool is_last = sj_module_address(module, at + 1) % ALIGNMENT == 0;
    return module->text[at] == 0 &&
           (is_last || at + 1 == module->text_bytes || module->text[at + 1] == 0);
}

sj_status sj_read_unowned_code(sj_module *module, const sj_decoder *decoder, uint32_t start,
                               uint32_t end)
{
    for (uint32_t at = start; at < end;) {
        uint64_t immediate;
        SJ_TRY(sj_array_reserve(&module->codes, &module->code_capacity, module->code_count, 1,
                                sizeof(*module->codes)));
        sj_code *code = &module->codes[module->code_count++];
        if (is_zero_filler(module, at)) {
            *code = (sj_code){.at = at, .length = 1, .kind = SJ_CODE_BREAK};
        } else {
            sj_decode(decoder, module->text + at, end - at, at, code, &immediate);
        }
        code->flags |= SJ_CODE_UNOWNED;
        sj_module_index_code(module, code);
        at += code->length;
    }
    return SJ_OK;
}

const sj_code *sj_any_code_behind(const sj_module *module, const sj_code *code)
{
    const sj_code *next = code + 1;
    return next < module->codes + module->code_count && next->at == sj_code_end(code) ? next : NULL;
}

bool sj_is_last_call(const sj_module *module, const sj_code *code)
{
    if (code->kind != SJ_CODE_CALL && code->kind != SJ_CODE_CALL_INDIRECT) {
        return false;
    }
    const sj_code *next = sj_any_code_behind(module, code);
    return next != NULL && (next->flags & SJ_CODE_UNOWNED) != 0 &&
           (next->kind == SJ_CODE_NOP || next->kind == SJ_CODE_BREAK);
}
