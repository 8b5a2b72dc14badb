#include "agent/planner/flags.h"

#include "agent/planner/exits.h"
#include "agent/planner/growable.h"

/* Design notes. Code without symbols and unwind tables (written by hand, start files, linkage
 * tables) is no piece, but it calls pieces and is called. So what lies between pieces is
 * disassembled, too, from the end of one to the start of the next; data there reads as code that is
 * not understood. */

/* Zeros between sections and functions: an odd number of them, read as code, would take the next
 * byte with it. */
static bool is_zero_filler(const sj_module *module, uint32_t at)
{
    enum { ALIGNMENT = 16 };
    const bool is_last = sj_module_address(module, at + 1) % ALIGNMENT == 0;
    return module->text[at] == 0 &&
           (is_last || at + 1 == module->text_bytes || module->text[at + 1] == 0);
}

static sj_status read_gap(sj_module *module, const sj_decoder *decoder, uint32_t start,
                          uint32_t end)
{
    for (uint32_t at = start; at < end;) {
        uint64_t immediate;
        SJ_TRY(sj_grow(&module->loose_codes, &module->loose_capacity, module->loose_count, 1,
                       sizeof(*module->loose_codes)));
        sj_code *code = &module->loose_codes[module->loose_count++];
        if (is_zero_filler(module, at)) {
            *code = (sj_code){.at = at, .length = 1, .kind = SJ_CODE_BREAK};
        } else {
            sj_decode(decoder, module->text + at, end - at, at, code, &immediate);
        }
        at += code->length;
    }
    return SJ_OK;
}

sj_status sj_read_loose_code(sj_module *module, const sj_decoder *decoder)
{
    uint32_t start = 0;
    for (size_t i = 0; i < module->piece_count; i++) {
        const sj_piece *piece = &module->pieces[i];
        SJ_TRY(read_gap(module, decoder, start, piece->start));
        start = piece->start + piece->size;
    }
    return read_gap(module, decoder, start, module->text_bytes);
}

static int compare_place(const void *key, const void *element)
{
    const int64_t offset = *(const int64_t *)key;
    const int64_t at = ((const sj_code *)element)->at;
    return (offset > at) - (offset < at);
}

const sj_code *sj_any_code_at(const sj_module *module, int64_t offset)
{
    const sj_code *code = sj_code_at(module, offset);
    if (code == NULL && module->loose_count > 0) {
        code = bsearch(&offset, module->loose_codes, module->loose_count,
                       sizeof(*module->loose_codes), compare_place);
    }
    return code;
}

const sj_code *sj_any_code_behind(const sj_module *module, const sj_code *code)
{
    const sj_code *next = code + 1;
    const bool is_loose = module->loose_count > 0 && code >= module->loose_codes &&
                          code < module->loose_codes + module->loose_count;
    const sj_code *end =
        is_loose ? module->loose_codes + module->loose_count : module->codes + module->code_count;
    return next < end && next->at == sj_code_end(code) ? next
                                                       : sj_any_code_at(module, sj_code_end(code));
}

bool sj_is_last_call(const sj_module *module, const sj_code *code)
{
    if (code->kind != SJ_CODE_CALL && code->kind != SJ_CODE_CALL_INDIRECT) {
        return false;
    }
    const uint32_t end = sj_code_end(code);
    const sj_code *next = sj_any_code_at(module, end);
    return sj_module_piece_at(module, end) == SJ_PIECE_NONE && next != NULL &&
           (next->kind == SJ_CODE_NOP || next->kind == SJ_CODE_BREAK);
}
