#define _GNU_SOURCE
#include "agent/planner/targets.h"

#include "agent/planner/exits.h"
#include "agent/planner/flags.h"
#include "agent/planner/growable.h"
#include "agent/planner/machine.h"

#include <elf.h>
#include <sys/mman.h>

enum { BIT_SETS = 8 };

/* State of the one pass over all code. */
typedef struct scan {
    sj_module *module;
    sj_decoder decoder;
    sj_links jumps; /* from = piece, to = code: leaves its piece */
    sj_links strong;
    sj_links weak;
    sj_links labels; /* from = piece, to = offset inside of another whose address the code takes */
    uint32_t landing_piece;
    sj_status status;
    bool is_fixed;       /* not position independent: immediates may be addresses */
    bool asks_for_flags; /* whose readers are looked for, also between pieces; not of Go */
} scan;

sj_status sj_links_add(sj_links *links, uint32_t from, uint32_t to)
{
    SJ_TRY(sj_grow(&links->items, &links->capacity, links->count, 1, sizeof(*links->items)));
    links->items[links->count++] = (sj_link){.from = from, .to = to};
    return SJ_OK;
}

/* What is filled from end to end takes fewer faults in larger pages, where there are any. */
static void prefer_large_pages(void *items, size_t bytes)
{
    enum { PAGE_BYTES = 4096 };
    const uintptr_t start = ((uintptr_t)items + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
    const uintptr_t end = ((uintptr_t)items + bytes) & ~(uintptr_t)(PAGE_BYTES - 1);
    if (start < end) {
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
    }
}

static sj_status allocate_bits(sj_module *module)
{
    const size_t words = module->text_bytes / 64 + 2;
    uint64_t *bits = calloc(BIT_SETS * words, sizeof(*bits));
    if (bits == NULL) {
        return SJ_ENOMEM;
    }
    prefer_large_pages(bits, BIT_SETS * words * sizeof(*bits));
    module->targets = bits;
    module->addressed = bits + words;
    module->called = bits + 2 * words;
    module->padding = bits + 3 * words;
    module->claimed = bits + 4 * words;
    module->table_entries = bits + 5 * words;
    module->pinned = bits + 6 * words;
    module->code_starts = bits + 7 * words;
    module->first_codes = malloc(words * sizeof(*module->first_codes));
    return module->first_codes != NULL ? SJ_OK : SJ_ENOMEM;
}

static void visit_landing_pad(void *context, uint64_t pad)
{
    scan *state = context;
    sj_module *module = state->module;
    const int64_t offset = (int64_t)(pad - module->text_low);
    sj_mark(module, offset, false);
    const uint32_t piece = sj_module_piece_at(module, offset);
    if (piece != SJ_PIECE_NONE && piece != state->landing_piece &&
        state->landing_piece != SJ_PIECE_NONE && state->status == SJ_OK) {
        state->status = sj_links_add(&state->strong, state->landing_piece, piece);
    }
}

static sj_status mark_known_places(scan *state)
{
    sj_module *module = state->module;
    for (size_t i = 0; i < module->piece_count; i++) {
        sj_bit_set(module->targets, module->pieces[i].start);
    }
    for (size_t i = 0; i < module->symbols.count; i++) {
        sj_mark(module, (int64_t)(module->symbols.items[i].address - module->text_low), false);
    }
    for (size_t i = 0; i < module->unwind.count; i++) {
        const sj_frame_range *range = &module->unwind.ranges[i];
        sj_mark(module, (int64_t)(range->start - module->text_low), false);
        if (range->landing != 0) {
            state->landing_piece =
                sj_module_piece_at(module, (int64_t)(range->start - module->text_low));
            sj_landing_pads(&module->elf, range, visit_landing_pad, state);
        }
    }
    sj_mark_data(module);
    return state->status;
}

static sj_status note_branch(scan *state, uint32_t piece_index, const sj_code *code)
{
    sj_module *module = state->module;
    const sj_piece *piece = &module->pieces[piece_index];
    const int64_t target = sj_code_target(code);
    if (code->kind != SJ_CODE_JUMP && code->kind != SJ_CODE_JUMP_IF) {
        sj_mark(module, target, false);
    } else if (sj_module_holds(module, target)) {
        sj_bit_set(module->targets, (uint32_t)target);
    }
    if (code->kind == SJ_CODE_CALL) {
        if (sj_module_holds(module, target)) {
            sj_bit_set(module->called, (uint32_t)target);
        }
        return SJ_OK;
    }
    if (target < piece->start || target >= (int64_t)piece->start + piece->size) {
        return sj_links_add(&state->jumps, piece_index, (uint32_t)(code - module->codes));
    }
    return SJ_OK;
}

/* An address that code takes. Labels of a function can only be named by its own code, so one inside
 * of another piece counts once that has turned out to be a part of the same function. */
static sj_status note_address(scan *state, uint32_t piece_index, int64_t target)
{
    sj_module *module = state->module;
    sj_mark(module, target, false);
    const uint32_t at = sj_module_piece_at(module, target);
    if (at == SJ_PIECE_NONE) {
        return SJ_OK;
    }
    if (at != piece_index && target != module->pieces[at].start) {
        return sj_links_add(&state->labels, piece_index, (uint32_t)target);
    }
    sj_bit_set(module->addressed, (uint32_t)target);
    return SJ_OK;
}

static sj_status note_code(scan *state, uint32_t piece_index, const sj_code *code)
{
    sj_module *module = state->module;
    sj_piece *piece = &module->pieces[piece_index];
    switch (code->kind) {
    case SJ_CODE_CALL:
    case SJ_CODE_CALL_INDIRECT:
        piece->has_call = true;
        sj_mark(module, sj_code_end(code), false);
        break;
    case SJ_CODE_JUMP_INDIRECT:
        piece->has_indirect = true;
        break;
    case SJ_CODE_BAD:
        piece->is_undecodable = true;
        break;
    default:
        break;
    }
    if ((code->flags & SJ_CODE_RELATIVE) != 0 && (code->flags & SJ_CODE_ADDRESS) != 0) {
        SJ_TRY(note_address(state, piece_index, sj_code_target(code)));
    } else if ((code->flags & SJ_CODE_RELATIVE) != 0) {
        sj_mark(module, sj_code_target(code), false);
    }
    return (code->flags & SJ_CODE_BRANCH) != 0 ? note_branch(state, piece_index, code) : SJ_OK;
}

/* Goes on to the row of an address of a range, or behind it; without a range there is no rule. */
static bool is_entry_frame(const sj_frame_range *range, const sj_frame_row **row, uint64_t address)
{
    if (range == NULL || address >= range->end) {
        return false;
    }
    while (address >= (*row)->end) {
        (*row)++;
    }
    return (*row)->is_entry;
}

static sj_status scan_piece(scan *state, uint32_t piece_index)
{
    sj_module *module = state->module;
    sj_piece *piece = &module->pieces[piece_index];
    const uint64_t address = sj_module_address(module, piece->start);
    const sj_frame_range *range = piece->frame;
    const sj_frame_row *row = range != NULL ? sj_unwind_row(&module->unwind, range, address) : NULL;
    const uint32_t end = piece->start + piece->size;
    SJ_TRY(sj_grow(&module->codes, &module->code_capacity, module->code_count, piece->size,
                   sizeof(*module->codes)));
    piece->first_code = (uint32_t)module->code_count;
    for (uint32_t at = piece->start; at < end;) {
        sj_code *code = &module->codes[module->code_count++];
        uint64_t immediate;
        sj_decode(&state->decoder, module->text + at, end - at, at, code, &immediate);
        sj_module_index_code(module, code);
        if (is_entry_frame(range, &row, sj_module_address(module, at))) {
            code->flags |= SJ_CODE_ENTRY_FRAME;
        } else {
            piece->has_frame = true;
        }
        if (state->is_fixed && immediate >= module->text_low) {
            SJ_TRY(note_address(state, piece_index, (int64_t)(immediate - module->text_low)));
        }
        SJ_TRY(note_code(state, piece_index, code));
        at += code->length;
    }
    piece->code_count = (uint32_t)module->code_count - piece->first_code;
    piece->head = module->machine->head(module, piece);
    if (module->machine->finish_piece != NULL) {
        module->machine->finish_piece(module, piece);
    }
    return piece->has_indirect ? module->machine->read_tables(module, piece_index, &state->weak)
                               : SJ_OK;
}

/* A piece without a name that nobody calls is a part of what it jumps into. */
static bool may_be_part(const sj_module *module, const sj_piece *piece)
{
    return piece->source == SJ_SYMBOL_EH_FRAME && !sj_bit_get(module->called, piece->start) &&
           !sj_bit_get(module->addressed, piece->start);
}

static sj_status link_jump(scan *state, uint32_t from, const sj_code *code)
{
    sj_module *module = state->module;
    const int64_t target = sj_code_target(code);
    const uint32_t to = sj_module_piece_at(module, target);
    if (to == SJ_PIECE_NONE) {
        return SJ_OK;
    }
    sj_piece *source = &module->pieces[from];
    sj_piece *piece = &module->pieces[to];
    const bool is_start = target == piece->start;
    if ((is_start && !piece->is_cold) || sj_is_never_taken(module, code)) {
        return SJ_OK;
    }
    if (is_start) {
        return sj_links_add(&state->strong, from, to);
    }
    if (!source->is_cold && !piece->is_cold) {
        if (may_be_part(module, source)) {
            source->is_cold = true;
        } else if (may_be_part(module, piece)) {
            piece->is_cold = true;
        }
    }
    return sj_links_add(&state->strong, from, to);
}

/* Data and immediates may look like an address: no label is inside of an instruction. */
static void mark_labels(sj_module *module, const sj_links *labels)
{
    for (size_t i = 0; i < labels->count; i++) {
        const sj_link *label = &labels->items[i];
        const uint32_t at = sj_module_piece_at(module, label->to);
        if (module->pieces[at].parent == module->pieces[label->from].parent) {
            sj_bit_set(module->addressed, label->to);
        }
    }
    for (size_t i = 0; i < module->piece_count; i++) {
        sj_piece *piece = &module->pieces[i];
        const uint32_t end = piece->start + piece->size;
        for (uint32_t at = piece->start + 1; at < end && !piece->has_labels;) {
            if ((at & 63) == 0 && module->addressed[at >> 6] == 0) {
                at += 64;
                continue;
            }
            if (sj_bit_get(module->addressed, at) && sj_code_at(module, at) != NULL) {
                const bool is_entry = sj_bit_get(module->table_entries, at);
                piece->has_entries |= is_entry;
                piece->has_labels |= !is_entry;
            }
            at++;
        }
    }
}

static sj_status link_jumps(scan *state)
{
    sj_module *module = state->module;
    for (size_t i = 0; i < module->piece_count; i++) {
        sj_piece *piece = &module->pieces[i];
        /* LLVM outlines cold blocks as functions of their own, which are called. */
        if (piece->is_cold && sj_bit_get(module->called, piece->start) && piece->code_count > 0 &&
            (module->codes[piece->first_code].flags & SJ_CODE_ENTRY_FRAME) != 0) {
            piece->is_cold = false;
        }
    }
    /* Twice: the first round may find parts whose starts the second can then join. */
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < state->jumps.count; i++) {
            const sj_link *jump = &state->jumps.items[i];
            SJ_TRY(link_jump(state, jump->from, &module->codes[jump->to]));
        }
    }
    return SJ_OK;
}

static sj_status scan_text(scan *state)
{
    sj_module *module = state->module;
    uint32_t end = 0; /* of the piece before */
    for (uint32_t i = 0; i <= module->piece_count; i++) {
        const bool is_piece = i < module->piece_count;
        if (state->asks_for_flags) {
            const uint32_t next = is_piece ? module->pieces[i].start : module->text_bytes;
            SJ_TRY(sj_read_loose_code(module, &state->decoder, end, next));
        }
        if (is_piece) {
            SJ_TRY(scan_piece(state, i));
            end = module->pieces[i].start + module->pieces[i].size;
        }
    }
    return SJ_OK;
}

static sj_status scan_module(scan *state)
{
    sj_module *module = state->module;
    SJ_TRY(mark_known_places(state));
    /* Instructions are four bytes long on average; pieces add what they need. */
    SJ_TRY(sj_grow(&module->codes, &module->code_capacity, 0, module->text_bytes / 3 + 64,
                   sizeof(*module->codes)));
    prefer_large_pages(module->codes, module->code_capacity * sizeof(*module->codes));
    SJ_TRY(scan_text(state));
    SJ_TRY(link_jumps(state));
    SJ_TRY(sj_join_parts(module, &state->strong, &state->weak));
    mark_labels(module, &state->labels);
    sj_judge_pieces(module);
    sj_find_padding(module, &state->decoder);
    return state->asks_for_flags ? sj_find_free_flags(module) : SJ_OK;
}

sj_status sj_module_find_targets(sj_module *module)
{
    SJ_TRY(allocate_bits(module));
    scan state = {.module = module,
                  .is_fixed = module->elf.type == ET_EXEC,
                  .asks_for_flags = module->machine->tells_flags && !module->is_go};
    SJ_TRY(sj_decoder_open(&state.decoder, module->machine, module->text_low));
    const sj_status status = scan_module(&state);
    sj_decoder_close(&state.decoder);
    free(state.jumps.items);
    free(state.strong.items);
    free(state.weak.items);
    free(state.labels.items);
    return status;
}
