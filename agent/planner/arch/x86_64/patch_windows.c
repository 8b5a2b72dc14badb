#include "agent/planner/arch/x86_64/x86_64.h"

#include "proto/base/array.h"

/* Design notes. A window is a run of whole instructions that move to a stub. Control may arrive
 * only at its first byte. So no other byte of it is a branch target, return address or label, and
 * windows do not overlap. Padding after a final instruction enlarges the window. */

enum { JUMP32_BYTES = 5 };

/* A language runtime finds a call by its return address, and rewrites these bytes before that
 * address. */
enum { CALL_SITE_BYTES = 13 };

static bool can_move(const sj_builder *builder, const sj_code *code)
{
    const bool is_generated = builder->module->is_generated;
    switch (code->kind) {
    case SJ_CODE_PLAIN:
    case SJ_CODE_NOP:
    case SJ_CODE_JUMP:
    case SJ_CODE_JUMP_IF:
    case SJ_CODE_RETURN:
    case SJ_CODE_STOP:
        return true;
    case SJ_CODE_CALL:
        return !is_generated;
    case SJ_CODE_JUMP_INDIRECT:
        return !is_generated || (code->flags & SJ_CODE_MEMORY) == 0;
    case SJ_CODE_CALL_INDIRECT:
        return !is_generated && (code->flags & SJ_CODE_STACK) == 0;
    default:
        return false;
    }
}

uint32_t sj_free_padding(const sj_module *module, uint32_t at, uint32_t limit)
{
    uint32_t count = 0;
    while (count < limit && at + count < module->text_bytes &&
           sj_bit_get(module->padding, at + count) && !sj_bit_get(module->claimed, at + count)) {
        count++;
    }
    return count;
}

static bool is_claimed(const sj_module *module, const sj_code *code)
{
    for (uint32_t at = code->at; at < sj_code_end(code); at++) {
        if (sj_bit_get(module->claimed, at)) {
            return true;
        }
    }
    return false;
}

bool sj_is_folded(const sj_builder *builder, const sj_code *code)
{
    const sj_module *module = builder->module;
    if (!builder->folds_exits || !sj_bit_get(module->targets, code->at) ||
        sj_bit_get(module->pinned, code->at) || !can_move(builder, code) ||
        !sj_code_is_final(code)) {
        return false;
    }
    const sj_code_range *range = &module->ranges[sj_module_range_at(module, code->at)];
    return range->parent == builder->function && sj_exit_of(module, range, code) == SJ_EXIT_LEAVES;
}

const sj_code *sj_leaving_code(const sj_builder *builder, const sj_code *code, sj_exit exit)
{
    if (exit == SJ_EXIT_LEAVES) {
        return code;
    }
    if (!builder->folds_exits || exit != SJ_EXIT_NOT ||
        (code->kind != SJ_CODE_JUMP && code->kind != SJ_CODE_JUMP_IF)) {
        return NULL;
    }
    const sj_code *target = sj_code_at(builder->module, sj_code_target(code));
    return target != NULL && sj_is_folded(builder, target) ? target : NULL;
}

/* True if control may arrive at an instruction other than from the instruction before it. */
static bool is_entered(const sj_builder *builder, const sj_code *code)
{
    return sj_bit_get(builder->module->targets, code->at) && !sj_is_folded(builder, code);
}

/* True if generated code has, within CALL_SITE_BYTES after `end`, the return address of an indirect
 * call. The bytes before such a call contain its target. */
static bool holds_call_site(const sj_builder *builder, const sj_code_range *range, uint32_t last,
                            uint32_t end)
{
    const sj_code *codes = builder->module->codes;
    const uint32_t count = range->first_code + range->code_count;
    for (uint32_t i = last + 1; builder->module->is_generated && i < count; i++) {
        if (codes[i].at >= end + CALL_SITE_BYTES) {
            return false;
        }
        if (codes[i].kind == SJ_CODE_CALL_INDIRECT &&
            sj_code_end(&codes[i]) < end + CALL_SITE_BYTES) {
            return true;
        }
    }
    return false;
}

bool sj_window_make(const sj_builder *builder, const sj_code_range *range, uint32_t first,
                    uint32_t last, uint32_t need, sj_window *window)
{
    const sj_module *module = builder->module;
    const sj_code *codes = module->codes;
    if (last >= range->first_code + range->code_count) {
        return false;
    }
    for (uint32_t i = first; i <= last; i++) {
        if (!can_move(builder, &codes[i]) || is_claimed(module, &codes[i]) ||
            (i > first && is_entered(builder, &codes[i]))) {
            return false;
        }
    }
    const uint32_t length = sj_code_end(&codes[last]) - codes[first].at;
    uint32_t free_bytes = length;
    if (length < need && sj_code_is_final(&codes[last])) {
        free_bytes += sj_free_padding(module, sj_code_end(&codes[last]), need - length);
    }
    *window = (sj_window){.first = first,
                          .last = last,
                          .start = codes[first].at,
                          .length = length,
                          .space = free_bytes};
    return free_bytes >= need && free_bytes <= SJ_PATCH_MAX_BYTES &&
           !holds_call_site(builder, range, last, codes[first].at + free_bytes);
}

/* Returns why an instruction at the entry cannot be part of a window, or SJ_SKIP_NONE. */
static sj_skip entry_reason(const sj_builder *builder, const sj_code *code, bool is_first)
{
    if (!is_first && is_entered(builder, code)) {
        return SJ_SKIP_HEAD_IS_TARGET;
    }
    if (code->kind == SJ_CODE_CALL || code->kind == SJ_CODE_CALL_INDIRECT) {
        return SJ_SKIP_HEAD_CALL;
    }
    return can_move(builder, code) ? SJ_SKIP_NONE : SJ_SKIP_TOO_SHORT;
}

/* Enlarges the entry's window by the next exit, if that exit is too close after the window for a
 * window of its own. */
static void include_next_exit(const sj_builder *builder, const sj_code_range *range,
                              sj_window *window)
{
    const sj_module *module = builder->module;
    const uint32_t start = window->start + window->length;
    uint32_t last = window->last;
    while (!sj_code_is_final(&module->codes[last])) {
        last++;
        if (last >= range->first_code + range->code_count ||
            sj_code_end(&module->codes[last]) - start >= JUMP32_BYTES) {
            return;
        }
    }
    const uint32_t end = sj_code_end(&module->codes[last]);
    sj_window wider;
    const sj_code *code = &module->codes[last];
    if (last > window->last &&
        sj_leaving_code(builder, code, sj_exit_of(module, range, code)) != NULL &&
        end - start + sj_free_padding(module, end, JUMP32_BYTES) < JUMP32_BYTES &&
        sj_window_make(builder, range, window->first, last, window->space, &wider)) {
        *window = wider;
    }
}

bool sj_window_entry(sj_builder *builder, uint32_t need, sj_window *window)
{
    const sj_module *module = builder->module;
    const sj_code_range *range = &module->ranges[builder->function];
    const uint32_t entry = range->entry;
    const uint32_t end = range->first_code + range->code_count;
    uint32_t first = range->first_code;
    while (first < end && module->codes[first].at < entry) {
        first++;
    }
    builder->reason = SJ_SKIP_TOO_SHORT;
    for (uint32_t last = first; last < end; last++) {
        if (sj_window_make(builder, range, first, last, need, window)) {
            include_next_exit(builder, range, window);
            return true;
        }
        const sj_code *code = &module->codes[last];
        const sj_skip reason = entry_reason(builder, code, last == first);
        if (reason == SJ_SKIP_HEAD_IS_TARGET || reason == SJ_SKIP_TOO_SHORT) {
            builder->reason = reason;
            return false;
        }
        if (sj_code_is_final(code) || sj_code_end(code) - entry >= need) {
            return false;
        }
        builder->reason = reason == SJ_SKIP_HEAD_CALL ? reason : builder->reason;
    }
    return false;
}

bool sj_window_exit(sj_builder *builder, const sj_code_range *range, uint32_t exit, uint32_t need,
                    sj_window *window)
{
    const sj_module *module = builder->module;
    const sj_code *codes = module->codes;
    for (uint32_t first = exit;; first--) {
        /* Behind a conditional exit, the window may also grow forward. */
        for (uint32_t last = exit; last < exit + need; last++) {
            if (sj_window_make(builder, range, first, last, need, window)) {
                return true;
            }
            if (last >= range->first_code + range->code_count || sj_code_is_final(&codes[last]) ||
                sj_code_end(&codes[last]) - codes[first].at >= need) {
                break;
            }
        }
        if (is_entered(builder, &codes[first])) {
            builder->reason = SJ_SKIP_TAIL_IS_TARGET;
            return false;
        }
        if (first == range->first_code || !can_move(builder, &codes[first - 1]) ||
            sj_code_is_final(&codes[first - 1]) || is_claimed(module, &codes[first - 1]) ||
            codes[exit].at - codes[first].at >= need) {
            builder->reason = SJ_SKIP_TAIL_BLOCKED;
            return false;
        }
    }
}
