#include "agent/planner/pieces.h"
#include "agent/planner/targets.h"

#include <elf.h>

enum { GAP_MAX_BYTES = 256 };

/* Marks alignment bytes inside a range: no-ops that follow an instruction after which control never
 * continues, up to the next place that control may reach. */
static void mark_inside(sj_module *module, const sj_code_range *range)
{
    bool is_dead = false;
    for (uint32_t i = 0; i < range->code_count; i++) {
        const sj_code *code = &module->codes[range->first_code + i];
        const bool is_filler = code->kind == SJ_CODE_NOP || code->kind == SJ_CODE_BREAK;
        if (is_dead && is_filler && !sj_bit_get(module->targets, code->at)) {
            for (uint32_t at = code->at; at < sj_code_end(code); at++) {
                sj_bit_mark(module->padding, at);
            }
        } else {
            is_dead = sj_code_is_final(code);
        }
    }
}

/* Returns the end of the executable section that contains an offset, or the offset itself if there
 * is none. */
static uint32_t section_end(const sj_module *module, uint32_t at)
{
    const uint64_t address = sj_module_address(module, at);
    for (uint32_t i = 0; i < module->elf.section_count; i++) {
        const sj_elf_section *section = &module->elf.sections[i];
        if ((section->flags & SHF_EXECINSTR) != 0 && address >= section->address &&
            address - section->address < section->size) {
            const uint64_t end = section->address + section->size - module->text_low;
            return end < module->text_bytes ? (uint32_t)end : module->text_bytes;
        }
    }
    return at;
}

/* Marks filler between two ranges: no-ops, int3 or zeros directly after a range. */
static void mark_gap(sj_module *module, const sj_decoder *decoder, uint32_t start, uint32_t end)
{
    uint32_t at = start;
    while (at < end) {
        sj_code code;
        uint64_t immediate;
        sj_decode(decoder, module->text + at, end - at, at, &code, &immediate);
        if (module->text[at] == 0) {
            code.length = 1;
        } else if (code.kind != SJ_CODE_NOP && code.kind != SJ_CODE_BREAK) {
            return;
        }
        for (unsigned i = 0; i < code.length; i++) {
            /* A target at `start` is the return address of a call that never returns. Unwinders
             * look it up, so it stays unpatched. Any other target ends the filler. */
            if (!sj_bit_get(module->targets, at + i)) {
                sj_bit_mark(module->padding, at + i);
            } else if (at + i != start) {
                return;
            }
        }
        at += code.length;
    }
}

/* True if control may reach the bytes after the range, as in hand-written code that runs into the
 * next function. */
static bool may_fall_through(const sj_module *module, const sj_code_range *range)
{
    if (range->code_count == 0) {
        return false;
    }
    const sj_code *last = &module->codes[range->first_code + range->code_count - 1];
    return last->kind == SJ_CODE_PLAIN || last->kind == SJ_CODE_JUMP_IF;
}

/* Finds the padding of the ranges `first` to `last` - 1. */
static void find_padding_of(sj_module *module, const sj_decoder *decoder, size_t first, size_t last)
{
    uint32_t section = 0; /* end of the section that contains the previous gap */
    for (size_t i = first; i < last; i++) {
        const sj_code_range *range = &module->ranges[i];
        const uint8_t skip = module->ranges[range->parent].skip;
        if (skip == SJ_SKIP_NONE || skip == SJ_SKIP_RUNTIME_SUPPORT) {
            mark_inside(module, range);
        }
        const uint32_t start = range->start + range->size;
        uint32_t end =
            i + 1 < module->range_count ? module->ranges[i + 1].start : module->text_bytes;
        if (start >= end || range->size == 0 || may_fall_through(module, range)) {
            continue;
        }
        section = start < section && section != 0 ? section : section_end(module, start);
        end = end < section ? end : section;
        end = end - start > GAP_MAX_BYTES && end > start ? start + GAP_MAX_BYTES : end;
        if (end > start) {
            mark_gap(module, decoder, start, end);
        }
    }
}

static sj_status find_padding_in_piece(void *context, uint32_t piece)
{
    sj_module *module = context;
    const uint32_t pieces = sj_pieces_count(module->threads);
    sj_decoder decoder;
    SJ_TRY(sj_decoder_open(&decoder, module->machine, module->text_low));
    find_padding_of(module, &decoder, module->range_count * piece / pieces,
                    module->range_count * (piece + 1) / pieces);
    sj_decoder_close(&decoder);
    return SJ_OK;
}

sj_status sj_find_padding(sj_module *module)
{
    return sj_pieces_run(module->threads, sj_pieces_count(module->threads), find_padding_in_piece,
                         module);
}
