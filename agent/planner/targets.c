#include "agent/planner/targets.h"

#include "agent/planner/exits.h"
#include "agent/planner/jump_tables.h"
#include "agent/planner/machine.h"

#include <stdlib.h>

enum { BIT_SETS = 8 };

/* State of sj_module_find_targets. */
typedef struct search {
    sj_module *module;
    sj_found_links found;
    uint32_t landing_range; /* range of the function whose landing pads are visited */
    sj_status status;
} search;

/* Allocates all bit sets in one block, and the index of instructions. */
static sj_status allocate_bits(sj_module *module)
{
    const size_t words = module->text_bytes / 64 + 2;
    uint64_t *bits = calloc(BIT_SETS * words, sizeof(*bits));
    if (bits == NULL) {
        return SJ_ENOMEM;
    }
    sj_prefer_large_pages(bits, BIT_SETS * words * sizeof(*bits));
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

/* Marks a landing pad. Links the range of its function with the pad's range. */
static void visit_landing_pad(void *context, uint64_t pad)
{
    search *state = context;
    sj_module *module = state->module;
    const int64_t offset = (int64_t)(pad - module->text_low);
    sj_mark(module, offset, false);
    const uint32_t range = sj_module_range_at(module, offset);
    if (range != SJ_CODE_RANGE_NONE && range != state->landing_range &&
        state->landing_range != SJ_CODE_RANGE_NONE && state->status == SJ_OK) {
        state->status = sj_links_add(&state->found.strong, state->landing_range, range);
    }
}

/* Excludes the code of a description whose landing pads are not all known. A patch might overwrite
 * one. */
static void exclude_range(sj_module *module, uint32_t first, const sj_fde *fde)
{
    for (uint32_t i = first;
         i < module->range_count && module->text_low + module->ranges[i].start < fde->end; i++) {
        sj_code_range *range = &module->ranges[i];
        range->skip = range->skip == SJ_SKIP_NONE ? SJ_SKIP_NO_CFI : range->skip;
    }
}

/* Marks starts of ranges, symbols, landing pads and addresses in data. */
static sj_status mark_known_places(search *state)
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
        state->landing_range = sj_module_range_at(module, (int64_t)(fde->start - module->text_low));
        if (!sj_landing_pads(&module->elf, fde, visit_landing_pad, state)) {
            exclude_range(module, state->landing_range, fde);
        }
    }
    sj_mark_data(module);
    return state->status;
}

/* Links the ranges of a jump that leaves its range, unless it leads to the start of a function. A
 * range may turn out to be a cold part. */
static sj_status link_jump(search *state, uint32_t from, const sj_code *code)
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
        return sj_links_add(&state->found.strong, from, to);
    }
    if (!source->is_cold && !range->is_cold) {
        if (sj_may_be_part(module, source)) {
            source->is_cold = true;
        } else if (sj_may_be_part(module, range)) {
            range->is_cold = true;
        }
    }
    return sj_links_add(&state->found.strong, from, to);
}

/* Sets has_labels and has_entries of ranges. Ignores addresses inside of instructions, because data
 * and immediate operands may look like addresses. */
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

/* Turns cold parts that are called into functions: LLVM outlines cold blocks as functions. */
static void find_outlined(sj_module *module)
{
    for (size_t i = 0; i < module->range_count; i++) {
        sj_code_range *range = &module->ranges[i];
        if (range->is_cold && sj_bit_get(module->called, range->start) && range->code_count > 0 &&
            (module->codes[range->first_code].flags & SJ_CODE_ENTRY_FRAME) != 0) {
            range->is_cold = false;
        }
    }
}

static sj_status link_jumps(search *state)
{
    const sj_module *module = state->module;
    /* The first round may find cold parts. The second round then joins jumps to their starts. */
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < state->found.jumps.count; i++) {
            const sj_link *jump = &state->found.jumps.items[i];
            SJ_TRY(link_jump(state, jump->from, &module->codes[jump->to]));
        }
    }
    return SJ_OK;
}

static sj_status find_targets(search *state)
{
    sj_module *module = state->module;
    SJ_TRY(mark_known_places(state));
    SJ_TRY(sj_scan_code(module, &state->found));
    find_outlined(module);
    SJ_TRY(sj_read_jump_tables(module, &state->found));
    SJ_TRY(link_jumps(state));
    SJ_TRY(sj_join_parts(module, &state->found.strong, &state->found.weak));
    mark_labels(module, &state->found.labels);
    SJ_TRY(sj_decide_ranges(module));
    if (!module->is_generated) { /* exception handlers of generated code may start with no-ops */
        SJ_TRY(sj_find_padding(module));
    }
    return module->follows_flags ? sj_find_dead_flags(module) : SJ_OK;
}

/* True if most of a large text is code without symbols and unwind rules. Such code is disassembled
 * only to find readers of the flags. In such a module that would take longer than all other steps,
 * and data would look like readers. */
static bool is_mostly_unowned(const sj_module *module)
{
    enum { LARGE_BYTES = 32 << 20 };
    uint64_t owned = 0;
    for (size_t i = 0; i < module->range_count; i++) {
        owned += module->ranges[i].size;
    }
    return module->text_bytes > owned + LARGE_BYTES && owned < module->text_bytes / 2;
}

sj_status sj_module_find_targets(sj_module *module)
{
    search state = {.module = module};
    module->follows_flags = module->machine->shows_flags && !module->is_go &&
                            !module->is_generated && !is_mostly_unowned(module);
    SJ_TRY(allocate_bits(module));
    const sj_status status = find_targets(&state);
    sj_links_free(&state.found);
    return status;
}
