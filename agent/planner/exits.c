#include "agent/planner/exits.h"

#include "agent/planner/jump_tables.h"
#include "agent/planner/machine.h"
#include "agent/planner/targets.h"

/* Design notes. The unwind rule at a jump shows whether the jump ends a call: then the stack is as
 * at the function's entry (CFA = rsp + 8). A jump with another frame stays in the function. An
 * indirect jump with the entry's frame is a tail call, with two exceptions. It may be the end of a
 * switch (a sum of a table's base and an entry). Or the function has labels whose address is taken,
 * so that the jump may be a computed goto.
 *
 * A jump to the function's own entry is a tail call to itself if it has the entry's frame and the
 * function sets up a frame elsewhere. Otherwise it is a loop that starts at the first
 * instruction. */

/* True if the address of a label in the function or its parts is taken. If `with_entries`, entries
 * of jump tables count, too: the jump may read its target from an array. */
static bool has_labels(const sj_module *module, const sj_code_range *function, bool with_entries)
{
    bool found = function->has_labels || (with_entries && function->has_entries);
    for (uint32_t i = function->next_part; i != SJ_CODE_RANGE_NONE && !found;
         i = module->ranges[i].next_part) {
        const sj_code_range *part = &module->ranges[i];
        found = part->has_labels || (with_entries && part->has_entries);
    }
    return found;
}

/* True if the target lies in the function of `range` or in one of its parts. */
static bool is_own(const sj_module *module, const sj_code_range *range, int64_t target)
{
    const uint32_t at = sj_module_range_at(module, target);
    return at != SJ_CODE_RANGE_NONE && module->ranges[at].parent == range->parent;
}

/* Classifies a jump through a register or memory. */
static sj_exit decide_indirect(const sj_module *module, const sj_code_range *range,
                               const sj_code *code)
{
    const sj_code_range *function = &module->ranges[range->parent];
    const bool is_entry_frame = (code->flags & SJ_CODE_ENTRY_FRAME) != 0;
    if ((code->flags & SJ_CODE_TABLE) != 0) {
        if (sj_is_switch_table(module, (uint64_t)(int64_t)code->value)) {
            return SJ_EXIT_NOT;
        }
        return is_entry_frame ? SJ_EXIT_LEAVES : SJ_EXIT_UNKNOWN;
    }
    if ((code->flags & SJ_CODE_RELATIVE) != 0) {
        return is_entry_frame ? SJ_EXIT_LEAVES : SJ_EXIT_UNKNOWN;
    }
    bool may_be_entry = true;
    if ((code->flags & SJ_CODE_MEMORY) == 0) {
        const sj_switch_shape shape = module->machine->find_switch(module, range, code);
        if (shape.has_sum) {
            const bool is_known = function->has_table && !shape.is_other_base;
            return is_known ? SJ_EXIT_NOT : SJ_EXIT_UNKNOWN;
        }
        may_be_entry = shape.is_indexed || !is_entry_frame;
    }
    const bool has_own_labels = has_labels(module, function, may_be_entry);
    if (is_entry_frame) {
        return has_own_labels ? SJ_EXIT_UNKNOWN : SJ_EXIT_LEAVES;
    }
    return has_own_labels || function->has_table ? SJ_EXIT_NOT : SJ_EXIT_UNKNOWN;
}

/* Sets `*distance` to the distance from the stack pointer to the frame address (CFA). Returns false
 * if the unwind rule has another form. */
static bool frame_at(const sj_module *module, int64_t offset, int32_t *distance)
{
    const uint64_t address = sj_module_address(module, offset);
    const uint32_t range = sj_module_range_at(module, offset);
    const sj_fde *fde = sj_eh_frame_find_near(
        &module->unwind, range != SJ_CODE_RANGE_NONE ? module->ranges[range].frame : NULL, address);
    if (fde == NULL) {
        return false;
    }
    const sj_cfi_row *row = sj_eh_frame_row(&module->unwind, fde, address);
    *distance = row->distance;
    return row->is_known;
}

bool sj_is_never_taken(const sj_module *module, const sj_code *jump)
{
    int32_t distance;
    int32_t expected;
    return frame_at(module, jump->at, &distance) &&
           frame_at(module, sj_code_target(jump), &expected) && distance != expected;
}

/* Classifies a jump or branch whose target is known. */
static sj_exit decide_direct(const sj_module *module, const sj_code_range *range,
                             const sj_code *code)
{
    const sj_code_range *function = &module->ranges[range->parent];
    const int64_t target = sj_code_target(code);
    const bool is_entry_frame = (code->flags & SJ_CODE_ENTRY_FRAME) != 0;
    if (target == function->start || target == (int64_t)function->entry) {
        return is_entry_frame && function->has_frame && code->kind != SJ_CODE_PINNED
                   ? SJ_EXIT_LEAVES
                   : SJ_EXIT_TO_ENTRY;
    }
    if ((target >= range->start && target < (int64_t)range->start + range->size) ||
        is_own(module, range, target)) {
        return SJ_EXIT_NOT;
    }
    if (target == (int64_t)range->start + range->size && !is_entry_frame) {
        return SJ_EXIT_NOT; /* clang at -O0 ends unreachable code with a jump to the function's end.
                             */
    }
    if (is_entry_frame && code->kind != SJ_CODE_PINNED) {
        return SJ_EXIT_LEAVES;
    }
    return sj_is_never_taken(module, code) ? SJ_EXIT_NOT : SJ_EXIT_UNKNOWN;
}

sj_exit sj_exit_of(const sj_module *module, const sj_code_range *range, const sj_code *code)
{
    switch (code->kind) {
    case SJ_CODE_RETURN:
        if ((code->flags & SJ_CODE_ENTRY_FRAME) != 0) {
            return SJ_EXIT_LEAVES;
        }
        /* In generated code, such a return ends an exception handler, not a call. */
        return module->is_generated ? SJ_EXIT_NOT : SJ_EXIT_UNKNOWN;
    case SJ_CODE_JUMP:
    case SJ_CODE_JUMP_IF:
        return decide_direct(module, range, code);
    case SJ_CODE_PINNED:
        if ((code->flags & SJ_CODE_BRANCH) != 0) {
            return decide_direct(module, range, code);
        }
        return SJ_EXIT_UNKNOWN;
    case SJ_CODE_JUMP_INDIRECT:
        return decide_indirect(module, range, code);
    default:
        return SJ_EXIT_NOT;
    }
}
