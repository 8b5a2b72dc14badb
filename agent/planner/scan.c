#include "agent/planner/targets.h"

#include "agent/abi/page.h"
#include "agent/planner/exits.h"
#include "agent/planner/flags.h"
#include "agent/planner/machine.h"
#include "agent/planner/pieces.h"
#include "proto/base/array.h"
#include "proto/base/progress.h"

#include <elf.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Design notes. One pass disassembles all code in pieces. One thread scans a piece, which has its
 * own list of instructions. The lists are joined afterwards. Marks are bits that the pass sets and
 * does not read, so the order of the pieces does not matter. Other results go into lists, which are
 * joined in the order of the text. So the result does not depend on the number of threads. Pieces
 * start at word boundaries of the bit sets, so each word of code_starts belongs to one piece. */

enum { LEAST_PIECE_BYTES = 1 << 14, WORD_BITS = 64 };

typedef struct scan_piece {
    sj_module module; /* a copy of the module with its own list of instructions */
    sj_decoder decoder;
    sj_found_links found;
    uint32_t first_range;
    uint32_t last_range; /* one past the last range */
    uint32_t start; /* start of the piece's text; code between two ranges belongs to the piece of
                       the second range */
    uint32_t end;
    size_t first_code; /* index of the piece's first instruction in the whole module */
} scan_piece;

typedef struct scan {
    sj_module *module;
    sj_found_links *found;
    scan_piece *pieces;
    uint32_t piece_count;
    sj_progress_work work;
    _Atomic uint64_t scanned; /* number of scanned ranges */
} scan;

/* Marks the target of a branch. Keeps a jump that leaves its range for later steps. */
static sj_status record_branch(scan_piece *piece, uint32_t range_index, const sj_code *code)
{
    sj_module *module = &piece->module;
    const sj_code_range *range = &module->ranges[range_index];
    const int64_t target = sj_code_target(code);
    if (code->kind != SJ_CODE_JUMP && code->kind != SJ_CODE_JUMP_IF) {
        sj_mark(module, target, false);
    } else if (sj_module_holds(module, target)) {
        sj_bit_mark(module->targets, (uint32_t)target);
    }
    if (code->kind == SJ_CODE_CALL) {
        if (sj_module_holds(module, target)) {
            sj_bit_mark(module->called, (uint32_t)target);
        }
        return SJ_OK;
    }
    if (target < range->start || target >= (int64_t)range->start + range->size) {
        return sj_links_add(&piece->found.jumps, range_index, (uint32_t)(code - module->codes));
    }
    return SJ_OK;
}

/* Records an address that code takes. Only a function's own code can take the address of its
 * labels. So an address inside another range is a label only if that range turns out to be a part
 * of the same function. */
static sj_status record_address(scan_piece *piece, uint32_t range_index, int64_t target)
{
    sj_module *module = &piece->module;
    sj_mark(module, target, false);
    const uint32_t at = sj_module_range_at(module, target);
    if (at == SJ_CODE_RANGE_NONE) {
        return SJ_OK;
    }
    if (at != range_index && target != module->ranges[at].start) {
        return sj_links_add(&piece->found.labels, range_index, (uint32_t)target);
    }
    sj_bit_mark(module->addressed, (uint32_t)target);
    return SJ_OK;
}

/* Records what an instruction says about its range and about other places. */
static sj_status record_code(scan_piece *piece, uint32_t range_index, const sj_code *code)
{
    sj_module *module = &piece->module;
    sj_code_range *range = &module->ranges[range_index];
    if (module->is_generated && sj_code_is_final(code)) {
        sj_mark(module, sj_code_end(code), false); /* an exception handler may start here */
    }
    switch (code->kind) {
    case SJ_CODE_CALL:
    case SJ_CODE_CALL_INDIRECT:
        range->has_call = true;
        sj_mark(module, sj_code_end(code), false);
        break;
    case SJ_CODE_JUMP_INDIRECT:
        range->has_indirect = true;
        break;
    case SJ_CODE_BAD:
        range->is_undecodable = true;
        break;
    default:
        break;
    }
    if ((code->flags & SJ_CODE_RELATIVE) != 0 && (code->flags & SJ_CODE_ADDRESS) != 0) {
        SJ_TRY(record_address(piece, range_index, sj_code_target(code)));
    } else if ((code->flags & SJ_CODE_RELATIVE) != 0) {
        sj_mark(module, sj_code_target(code), false);
    }
    return (code->flags & SJ_CODE_BRANCH) != 0 ? record_branch(piece, range_index, code) : SJ_OK;
}

/* Advances `*row` to the row of an address. True if the frame there is as at the function's entry.
 * False if no unwind range contains the address. */
static bool is_entry_frame(const sj_fde *fde, const sj_cfi_row **row, uint64_t address)
{
    if (fde == NULL || address >= fde->end) {
        return false;
    }
    while (address >= (*row)->end) {
        (*row)++;
    }
    return (*row)->is_entry;
}

/* Disassembles a range into the piece's list of instructions. */
static sj_status scan_range(scan_piece *piece, uint32_t range_index)
{
    sj_module *module = &piece->module;
    sj_code_range *range = &module->ranges[range_index];
    const uint64_t address = sj_module_address(module, range->start);
    const sj_fde *fde = range->frame;
    const sj_cfi_row *row = fde != NULL ? sj_eh_frame_row(&module->unwind, fde, address) : NULL;
    const uint32_t end = range->start + range->size;
    const bool is_fixed = module->elf.type == ET_EXEC; /* immediate operands may be addresses */
    SJ_TRY(sj_array_reserve(&module->codes, &module->code_capacity, module->code_count, range->size,
                            sizeof(*module->codes)));
    range->first_code = (uint32_t)module->code_count;
    for (uint32_t at = range->start; at < end;) {
        sj_code *code = &module->codes[module->code_count++];
        uint64_t immediate;
        sj_decode(&piece->decoder, module->text + at, end - at, at, code, &immediate);
        sj_module_index_code(module, code);
        if (is_entry_frame(fde, &row, sj_module_address(module, at))) {
            code->flags |= SJ_CODE_ENTRY_FRAME;
        } else {
            range->has_frame = true;
        }
        if (is_fixed && immediate >= module->text_low) {
            SJ_TRY(record_address(piece, range_index, (int64_t)(immediate - module->text_low)));
        }
        SJ_TRY(record_code(piece, range_index, code));
        at += code->length;
    }
    range->code_count = (uint32_t)module->code_count - range->first_code;
    range->entry = module->machine->entry(module, range);
    if (module->machine->finish_range != NULL) {
        module->machine->finish_range(module, range);
    }
    return SJ_OK;
}

void sj_prefer_large_pages(void *items, size_t bytes)
{
    const uintptr_t start = sj_page_round_up((uintptr_t)items);
    const uintptr_t end = sj_page_start((uintptr_t)items + bytes);
    if (start < end) {
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
    }
}

static sj_code *allocate_codes(size_t count)
{
    sj_code *codes = malloc(count * sizeof(*codes));
    if (codes != NULL) {
        sj_prefer_large_pages(codes, count * sizeof(*codes));
    }
    return codes;
}

/* Disassembles the ranges of a piece, and the code between them if flags are followed. */
static sj_status scan_ranges(scan *state, scan_piece *piece)
{
    sj_module *module = &piece->module;
    uint32_t end = piece->start; /* end of the previous range */
    for (uint32_t i = piece->first_range; i <= piece->last_range; i++) {
        const bool is_range = i < piece->last_range;
        if (module->follows_flags) {
            SJ_TRY(sj_read_unowned_code(module, &piece->decoder, end,
                                        is_range ? module->ranges[i].start : piece->end));
        }
        if (is_range) {
            SJ_TRY(scan_range(piece, i));
            end = module->ranges[i].start + module->ranges[i].size;
            const uint64_t done =
                1 + atomic_fetch_add_explicit(&state->scanned, 1, memory_order_relaxed);
            sj_progress_reach(state->work, done); /* one of the threads reports it */
        }
    }
    return SJ_OK;
}

static sj_status scan_one_piece(void *context, uint32_t number)
{
    scan *state = context;
    scan_piece *piece = &state->pieces[number];
    sj_module *module = &piece->module;
    *module = *state->module;
    /* Instructions have four bytes on average. Ranges reserve the capacity that they need. */
    module->code_capacity = (piece->end - piece->start) / 3 + 64;
    module->codes = allocate_codes(module->code_capacity);
    if (module->codes == NULL) {
        return SJ_ENOMEM;
    }
    SJ_TRY(sj_decoder_open(&piece->decoder, module->machine, module->text_low));
    piece->decoder.keeps_faults = module->is_generated;
    const sj_status status = scan_ranges(state, piece);
    sj_decoder_close(&piece->decoder);
    return status;
}

/* Divides the text into at most `piece_limit` pieces. A piece ends after a range, at a word
 * boundary of the bit sets. */
static void divide_text(scan *state, uint32_t piece_limit)
{
    const sj_module *module = state->module;
    const uint32_t share = module->text_bytes / piece_limit;
    const uint32_t bytes = share > LEAST_PIECE_BYTES ? share : LEAST_PIECE_BYTES;
    scan_piece next = {0};
    for (uint32_t i = 1; i < module->range_count && state->piece_count + 1 < piece_limit; i++) {
        const uint32_t end = module->ranges[i - 1].start + module->ranges[i - 1].size;
        if (end % WORD_BITS == 0 && end - next.start >= bytes) {
            next.last_range = i;
            next.end = end;
            state->pieces[state->piece_count++] = next;
            next = (scan_piece){.first_range = i, .start = end};
        }
    }
    next.last_range = (uint32_t)module->range_count;
    next.end = module->text_bytes;
    state->pieces[state->piece_count++] = next;
}

/* Moves the instructions of a piece to the list of the whole module. */
static sj_status move_piece(void *context, uint32_t number)
{
    scan *state = context;
    scan_piece *piece = &state->pieces[number];
    sj_module *module = state->module;
    const uint32_t first = (uint32_t)piece->first_code;
    memcpy(module->codes + first, piece->module.codes,
           piece->module.code_count * sizeof(*module->codes));
    free(piece->module.codes);
    piece->module.codes = NULL;
    for (uint32_t i = piece->first_range; i < piece->last_range; i++) {
        module->ranges[i].first_code += first;
    }
    const uint32_t last_word = (piece->end + WORD_BITS - 1) / WORD_BITS;
    for (uint32_t word = piece->start / WORD_BITS; word < last_word; word++) {
        if (module->code_starts[word] != 0) {
            module->first_codes[word] += first;
        }
    }
    return SJ_OK;
}

static sj_status append_links(sj_links *links, const sj_links *added, uint32_t first_code)
{
    SJ_TRY(sj_array_reserve(&links->items, &links->capacity, links->count, added->count,
                            sizeof(*links->items)));
    for (size_t i = 0; i < added->count; i++) {
        links->items[links->count] = added->items[i];
        links->items[links->count++].to += first_code;
    }
    return SJ_OK;
}

/* Joins the lists of all pieces. */
static sj_status join_pieces(scan *state)
{
    sj_module *module = state->module;
    size_t count = 0;
    for (uint32_t i = 0; i < state->piece_count; i++) {
        scan_piece *piece = &state->pieces[i];
        const sj_found_links *added = &piece->found;
        piece->first_code = count;
        count += piece->module.code_count;
        SJ_TRY(append_links(&state->found->jumps, &added->jumps, (uint32_t)piece->first_code));
        SJ_TRY(append_links(&state->found->labels, &added->labels, 0));
    }
    if (count > UINT32_MAX) {
        return SJ_ELIMIT;
    }
    if (state->piece_count == 1) {
        module->codes = state->pieces->module.codes;
        module->code_capacity = state->pieces->module.code_capacity;
        module->code_count = count;
        state->pieces->module.codes = NULL;
        return SJ_OK;
    }
    module->codes = allocate_codes(count + 1);
    module->code_capacity = count + 1;
    module->code_count = count;
    return module->codes != NULL
               ? sj_pieces_run(module->threads, state->piece_count, move_piece, state)
               : SJ_ENOMEM;
}

sj_status sj_scan_code(sj_module *module, sj_found_links *found)
{
    const uint32_t piece_limit =
        module->machine->scans_in_order ? 1 : sj_pieces_count(module->threads);
    scan state = {.module = module,
                  .found = found,
                  .pieces = calloc(piece_limit, sizeof(*state.pieces)),
                  .work = sj_progress_begin(module->range_count)};
    sj_status status = SJ_ENOMEM;
    if (state.pieces != NULL) {
        divide_text(&state, piece_limit);
        status = sj_pieces_run(module->threads, state.piece_count, scan_one_piece, &state);
    }
    if (status == SJ_OK) {
        status = join_pieces(&state);
    }
    for (uint32_t i = 0; i < state.piece_count; i++) {
        free(state.pieces[i].module.codes);
        sj_links_free(&state.pieces[i].found);
    }
    free(state.pieces);
    sj_progress_end(state.work);
    return status;
}
