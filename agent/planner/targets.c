#include "agent/planner/targets.h"

#include "agent/planner/exits.h"
#include "agent/planner/flags.h"
#include "agent/planner/machine.h"
#include "proto/base/array.h"
#include "proto/base/progress.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BIT_SETS = 8 };

/* State of the one pass over all code. */
typedef struct scan {
    sj_module *module;
    sj_decoder decoder;
    sj_links jumps; /* from = range, to = code: leaves its range */
    sj_links strong;
    sj_links weak;
    sj_links labels; /* from = range, to = offset inside of another whose address the code takes */
    uint32_t landing_range;
    sj_status status;
    bool is_fixed;      /* not position independent: immediates may be addresses */
    bool follows_flags; /* whose readers are looked for, also between ranges; not of Go */
} scan;

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
    const uint32_t range = sj_module_range_at(module, offset);
    if (range != SJ_CODE_RANGE_NONE && range != state->landing_range &&
        state->landing_range != SJ_CODE_RANGE_NONE && state->status == SJ_OK) {
        state->status = sj_links_add(&state->strong, state->landing_range, range);
    }
}

static sj_status mark_known_places(scan *state)
{
    sj_module *module = state->module;
    for (size_t i = 0; i < module->range_count; i++) {
        sj_bit_set(module->targets, module->ranges[i].start);
    }
    for (size_t i = 0; i < module->symbols.count; i++) {
        sj_mark(module, (int64_t)(module->symbols.items[i].address - module->text_low), false);
    }
    for (size_t i = 0; i < module->unwind.count; i++) {
        const sj_fde *fde = &module->unwind.ranges[i];
        sj_mark(module, (int64_t)(fde->start - module->text_low), false);
        if (fde->landing != 0) {
            state->landing_range =
                sj_module_range_at(module, (int64_t)(fde->start - module->text_low));
            sj_landing_pads(&module->elf, fde, visit_landing_pad, state);
        }
    }
    sj_mark_data(module);
    return state->status;
}

static sj_status record_branch(scan *state, uint32_t range_index, const sj_code *code)
{
    sj_module *module = state->module;
    const sj_code_range *range = &module->ranges[range_index];
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
    if (target < range->start || target >= (int64_t)range->start + range->size) {
        return sj_links_add(&state->jumps, range_index, (uint32_t)(code - module->codes));
    }
    return SJ_OK;
}

/* An address that code takes. Labels of a function can only be named by its own code, so one inside
 * of another range counts once that has turned out to be a part of the same function. */
static sj_status record_address(scan *state, uint32_t range_index, int64_t target)
{
    sj_module *module = state->module;
    sj_mark(module, target, false);
    const uint32_t at = sj_module_range_at(module, target);
    if (at == SJ_CODE_RANGE_NONE) {
        return SJ_OK;
    }
    if (at != range_index && target != module->ranges[at].start) {
        return sj_links_add(&state->labels, range_index, (uint32_t)target);
    }
    sj_bit_set(module->addressed, (uint32_t)target);
    return SJ_OK;
}

static sj_status record_code(scan *state, uint32_t range_index, const sj_code *code)
{
    sj_module *module = state->module;
    sj_code_range *range = &module->ranges[range_index];
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
        SJ_TRY(record_address(state, range_index, sj_code_target(code)));
    } else if ((code->flags & SJ_CODE_RELATIVE) != 0) {
        sj_mark(module, sj_code_target(code), false);
    }
    return (code->flags & SJ_CODE_BRANCH) != 0 ? record_branch(state, range_index, code) : SJ_OK;
}

/* Goes on to the row of an address of a range, or behind it; without a range there is no rule. */
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

static sj_status scan_range(scan *state, uint32_t range_index)
{
    sj_module *module = state->module;
    sj_code_range *range = &module->ranges[range_index];
    const uint64_t address = sj_module_address(module, range->start);
    const sj_fde *fde = range->frame;
    const sj_cfi_row *row = fde != NULL ? sj_eh_frame_row(&module->unwind, fde, address) : NULL;
    const uint32_t end = range->start + range->size;
    SJ_TRY(sj_array_reserve(&module->codes, &module->code_capacity, module->code_count, range->size,
                            sizeof(*module->codes)));
    range->first_code = (uint32_t)module->code_count;
    for (uint32_t at = range->start; at < end;) {
        sj_code *code = &module->codes[module->code_count++];
        uint64_t immediate;
        sj_decode(&state->decoder, module->text + at, end - at, at, code, &immediate);
        sj_module_index_code(module, code);
        if (is_entry_frame(fde, &row, sj_module_address(module, at))) {
            code->flags |= SJ_CODE_ENTRY_FRAME;
        } else {
            range->has_frame = true;
        }
        if (state->is_fixed && immediate >= module->text_low) {
            SJ_TRY(record_address(state, range_index, (int64_t)(immediate - module->text_low)));
        }
        SJ_TRY(record_code(state, range_index, code));
        at += code->length;
    }
    range->code_count = (uint32_t)module->code_count - range->first_code;
    range->entry = module->machine->entry(module, range);
    if (module->machine->finish_range != NULL) {
        module->machine->finish_range(module, range);
    }
    return range->has_indirect ? module->machine->read_tables(module, range_index, &state->weak)
                               : SJ_OK;
}

/* A range without a name that no code calls is a part of what it jumps into. */
static bool may_be_part(const sj_module *module, const sj_code_range *range)
{
    return range->source == SJ_SYMBOL_EH_FRAME && !sj_bit_get(module->called, range->start) &&
           !sj_bit_get(module->addressed, range->start);
}

static sj_status link_jump(scan *state, uint32_t from, const sj_code *code)
{
    sj_module *module = state->module;
    const int64_t target = sj_code_target(code);
    const uint32_t to = sj_module_range_at(module, target);
    if (to == SJ_CODE_RANGE_NONE) {
        return SJ_OK;
    }
    sj_code_range *source = &module->ranges[from];
    sj_code_range *range = &module->ranges[to];
    const bool is_start = target == range->start;
    if ((is_start && !range->is_cold) || sj_is_never_taken(module, code)) {
        return SJ_OK;
    }
    if (is_start) {
        return sj_links_add(&state->strong, from, to);
    }
    if (!source->is_cold && !range->is_cold) {
        if (may_be_part(module, source)) {
            source->is_cold = true;
        } else if (may_be_part(module, range)) {
            range->is_cold = true;
        }
    }
    return sj_links_add(&state->strong, from, to);
}

/* Data and immediates may look like an address: no label is inside of an instruction. */
static void mark_labels(sj_module *module, const sj_links *labels)
{
    for (size_t i = 0; i < labels->count; i++) {
        const sj_link *label = &labels->items[i];
        const uint32_t at = sj_module_range_at(module, label->to);
        if (module->ranges[at].parent == module->ranges[label->from].parent) {
            sj_bit_set(module->addressed, label->to);
        }
    }
    for (size_t i = 0; i < module->range_count; i++) {
        sj_code_range *range = &module->ranges[i];
        const uint32_t end = range->start + range->size;
        for (uint32_t at = range->start + 1; at < end && !range->has_labels;) {
            if ((at & 63) == 0 && module->addressed[at >> 6] == 0) {
                at += 64;
                continue;
            }
            if (sj_bit_get(module->addressed, at) && sj_code_at(module, at) != NULL) {
                const bool is_entry = sj_bit_get(module->table_entries, at);
                range->has_entries |= is_entry;
                range->has_labels |= !is_entry;
            }
            at++;
        }
    }
}

static sj_status link_jumps(scan *state)
{
    sj_module *module = state->module;
    for (size_t i = 0; i < module->range_count; i++) {
        sj_code_range *range = &module->ranges[i];
        /* LLVM outlines cold blocks as functions of their own, which are called. */
        if (range->is_cold && sj_bit_get(module->called, range->start) && range->code_count > 0 &&
            (module->codes[range->first_code].flags & SJ_CODE_ENTRY_FRAME) != 0) {
            range->is_cold = false;
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
    uint32_t end = 0; /* of the range before */
    sj_status status = SJ_OK;
    const sj_progress_work work = sj_progress_begin(module->range_count);
    for (uint32_t i = 0; i <= module->range_count && status == SJ_OK; i++) {
        const bool is_range = i < module->range_count;
        if (state->follows_flags) {
            const uint32_t next = is_range ? module->ranges[i].start : module->text_bytes;
            status = sj_read_unowned_code(module, &state->decoder, end, next);
        }
        if (is_range && status == SJ_OK) {
            status = scan_range(state, i);
            end = module->ranges[i].start + module->ranges[i].size;
            sj_progress_step(work);
        }
    }
    sj_progress_end(work);
    return status;
}

static sj_status scan_module(scan *state)
{
    sj_module *module = state->module;
    SJ_TRY(mark_known_places(state));
    /* Instructions are four bytes long on average; ranges add what they need. */
    SJ_TRY(sj_array_reserve(&module->codes, &module->code_capacity, 0, module->text_bytes / 3 + 64,
                            sizeof(*module->codes)));
    prefer_large_pages(module->codes, module->code_capacity * sizeof(*module->codes));
    SJ_TRY(scan_text(state));
    SJ_TRY(link_jumps(state));
    SJ_TRY(sj_join_parts(module, &state->strong, &state->weak));
    mark_labels(module, &state->labels);
    sj_decide_ranges(module);
    if (!module->is_generated) { /* handlers may begin with no-ops */
        sj_find_padding(module, &state->decoder);
    }
    return state->follows_flags ? sj_find_dead_flags(module) : SJ_OK;
}

sj_status sj_module_find_targets(sj_module *module)
{
    SJ_TRY(allocate_bits(module));
    scan state = {.module = module,
                  .is_fixed = module->elf.type == ET_EXEC,
                  .follows_flags =
                      module->machine->shows_flags && !module->is_go && !module->is_generated};
    SJ_TRY(sj_decoder_open(&state.decoder, module->machine, module->text_low));
    state.decoder.keeps_faults = module->is_generated;
    const sj_status status = scan_module(&state);
    sj_decoder_close(&state.decoder);
    free(state.jumps.items);
    free(state.strong.items);
    free(state.weak.items);
    free(state.labels.items);
    return status;
}
