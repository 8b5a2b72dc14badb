#include "agent/planner/arch/aarch64/aarch64.h"

#include "agent/abi/aarch64_words.h"

/* Design notes.
 *
 * Each patch replaces one instruction with a branch to a stub. All other instructions stay where
 * they are, so jumps to them need no change. A loop that jumps to the function's first instruction
 * must not run the entry probe again. Such a jump is patched to reach that instruction's copy after
 * the probe. */

enum { LABEL_TAKEN = 1 };

typedef struct function_work {
    sj_builder *builder;
    const sj_code_range *range; /* range of the current place */
    const sj_code *entry;
    uint32_t
        /* stub with the first instruction, without the probe; SJ_CODE_RANGE_NONE: not made yet */
        behind_entry;
} function_work;

static const uint8_t *bytes_of(const function_work *work, const sj_code *code)
{
    return work->builder->module->text + code->at;
}

static bool can_move(const sj_code *code)
{
    return code->kind == SJ_CODE_PLAIN || code->kind == SJ_CODE_NOP ||
           (code->kind >= SJ_CODE_CALL && code->kind <= SJ_CODE_RETURN) ||
           code->kind == SJ_CODE_STOP;
}

/* Emits a call as a jump. The callee returns to the instruction after the original call. */
static void emit_call(const function_work *work, const sj_code *code)
{
    sj_builder *builder = work->builder;
    sj_emit_push_return(builder, sj_code_end(code));
    if (code->kind == SJ_CODE_CALL) {
        sj_emit_jump(builder, sj_code_target(code));
        return;
    }
    uint8_t bytes[SJ_WORD_BYTES];
    memcpy(bytes, bytes_of(work, code), sizeof(bytes));
    bytes[2] &= (uint8_t)~0x20; /* blr becomes br */
    sj_emit_copy(builder, bytes, sizeof(bytes));
}

/* Emits code with the same effect as an instruction at its original address. */
static void emit_moved(const function_work *work, const sj_code *code)
{
    sj_builder *builder = work->builder;
    if (code->kind == SJ_CODE_NOP) {
        return;
    }
    sj_emit_place(builder, code->at);
    switch (code->kind) {
    case SJ_CODE_CALL:
    case SJ_CODE_CALL_INDIRECT:
        emit_call(work, code);
        return;
    case SJ_CODE_JUMP:
        sj_emit_jump(builder, sj_code_target(code));
        return;
    default:
        break;
    }
    if ((code->flags & (SJ_CODE_RELATIVE | SJ_CODE_BRANCH)) != 0) {
        sj_emit_relative(builder, bytes_of(work, code), SJ_WORD_BYTES, 0, sj_code_target(code));
    } else {
        sj_emit_copy(builder, bytes_of(work, code), SJ_WORD_BYTES);
    }
}

/* Returns the range of the function that starts at a direct jump's target, or
 * SJ_CODE_RANGE_NONE. */
static uint32_t callee_of(const sj_module *module, const sj_code *code)
{
    const uint32_t callee = code->kind == SJ_CODE_JUMP || code->kind == SJ_CODE_JUMP_IF
                                ? sj_module_range_at(module, sj_code_target(code))
                                : SJ_CODE_RANGE_NONE;
    return callee != SJ_CODE_RANGE_NONE && module->ranges[callee].parent == callee &&
                   sj_code_target(code) == module->ranges[callee].start
               ? callee
               : SJ_CODE_RANGE_NONE;
}

static void emit_leave(const function_work *work, const sj_code *code)
{
    enum { WORD_BR = 0xd61f0000, REGISTER_SHIFT = 5, REGISTER_MASK = 31 };
    const uint32_t word = sj_word_read(bytes_of(work, code));
    const uint32_t jump_register = word >> REGISTER_SHIFT & REGISTER_MASK;
    if ((word & ~(uint32_t)(REGISTER_MASK << REGISTER_SHIFT)) == (uint32_t)WORD_BR &&
        jump_register < SJ_JUMP_REGISTERS) {
        sj_emit_jump_leave(work->builder, jump_register);
    } else {
        sj_emit_probe(work->builder, SJ_OPERATION_LEAVE, false);
    }
}

/* Emits the probe and the jump of an exit, or the jump of a loop to the entry. For a conditional
 * jump, emits them for the case that the jump is taken. */
static void emit_after_branch(const function_work *work, const sj_code *code, sj_exit exit)
{
    sj_emit_place(work->builder, code->at);
    if (exit == SJ_EXIT_TO_ENTRY) {
        sj_emit_jump_stub(work->builder, work->behind_entry);
        return;
    }
    const uint32_t callee = callee_of(work->builder->module, code);
    if (callee != SJ_CODE_RANGE_NONE) {
        sj_emit_tail_call(work->builder, callee);
        return;
    }
    emit_leave(work, code);
    if (code->kind == SJ_CODE_JUMP_IF) {
        sj_emit_jump(work->builder, sj_code_target(code));
    } else {
        emit_moved(work, code);
    }
}

/* Emits the stub's code for one instruction. `exit` is the result of sj_exit_of for it. */
static void emit_site(const function_work *work, const sj_code *code, sj_exit exit)
{
    sj_builder *builder = work->builder;
    const bool continues = !sj_code_is_final(code) && code->kind != SJ_CODE_CALL &&
                           code->kind != SJ_CODE_CALL_INDIRECT;
    sj_emit_place(builder, code->at);
    if (exit != SJ_EXIT_LEAVES && exit != SJ_EXIT_TO_ENTRY) {
        emit_moved(work, code);
        if (continues) {
            sj_emit_place(builder, sj_code_end(code));
            sj_emit_jump(builder, sj_code_end(code));
        }
        return;
    }
    if (code->kind == SJ_CODE_JUMP_IF) {
        sj_emit_copy_to_label(builder, bytes_of(work, code), SJ_WORD_BYTES, 0, LABEL_TAKEN);
        sj_emit_jump(builder, sj_code_end(code));
        sj_emit_label(builder, LABEL_TAKEN);
    }
    emit_after_branch(work, code, exit);
}

static void patch_site(const function_work *work, const sj_code *code, uint32_t stub)
{
    sj_claim_bytes(work->builder, code->at, code->length);
    sj_patch_branch(work->builder, code, stub);
}

static void make_behind_head(function_work *work)
{
    if (work->behind_entry == SJ_CODE_RANGE_NONE) {
        sj_builder *builder = work->builder;
        const sj_code_range *function = &builder->module->ranges[builder->function];
        const sj_exit exit = sj_exit_of(builder->module, function, work->entry);
        work->behind_entry = sj_stub_begin(builder);
        emit_site(work, work->entry, exit);
        sj_stub_end(builder);
    }
}

/* Hooks the exits of one range and its jumps to the entry. Returns false and sets the builder's
 * reason if one of them cannot be patched. */
static bool hook_range(function_work *work)
{
    sj_builder *builder = work->builder;
    const sj_module *module = builder->module;
    bool is_dead = false;
    for (uint32_t i = 0; i < work->range->code_count; i++) {
        const sj_code *code = &module->codes[work->range->first_code + i];
        const sj_exit exit = sj_exit_of(module, work->range, code);
        /* Words that control never reaches may be data. */
        is_dead = is_dead && !sj_bit_get(module->targets, code->at);
        if (is_dead) {
            continue;
        }
        is_dead = sj_code_is_final(code);
        if (code == work->entry || (exit != SJ_EXIT_LEAVES && exit != SJ_EXIT_TO_ENTRY)) {
            continue;
        }
        if (!can_move(code) || sj_bit_get(module->claimed, code->at)) {
            builder->reason = SJ_SKIP_TAIL_BLOCKED;
            return false;
        }
        if (exit == SJ_EXIT_TO_ENTRY) {
            make_behind_head(work);
        }
        const uint32_t stub = sj_stub_begin(builder);
        emit_site(work, code, exit);
        sj_stub_end(builder);
        patch_site(work, code, stub);
    }
    return true;
}

static bool find_head(function_work *work)
{
    sj_builder *builder = work->builder;
    const sj_module *module = builder->module;
    const sj_code_range *function = work->range;
    const uint32_t at = function->entry;
    builder->reason = SJ_SKIP_TOO_SHORT;
    for (uint32_t i = 0; i < function->code_count; i++) {
        const sj_code *code = &module->codes[function->first_code + i];
        if (code->at != at) {
            continue;
        }
        work->entry = code;
        if (function->is_arm || sj_exit_of(module, function, code) == SJ_EXIT_TO_ENTRY) {
            builder->reason = SJ_SKIP_HEAD_LOOP;
            return false;
        }
        return can_move(code) && !sj_bit_get(module->claimed, at);
    }
    return false;
}

bool sj_aarch64_hook(sj_builder *builder, sj_technique technique)
{
    const sj_module *module = builder->module;
    const sj_code_range *function = &module->ranges[builder->function];
    function_work work = {
        .builder = builder, .range = function, .behind_entry = SJ_CODE_RANGE_NONE};
    if (technique != SJ_TECHNIQUE_INLINE || !find_head(&work)) {
        return false;
    }
    for (uint32_t i = builder->function; i != SJ_CODE_RANGE_NONE; i = module->ranges[i].next_part) {
        work.range = &module->ranges[i];
        if (!hook_range(&work)) {
            return false;
        }
    }
    const uint32_t stub = sj_stub_begin(builder);
    sj_emit_probe(builder, SJ_OPERATION_ENTER, false);
    emit_site(&work, work.entry, sj_exit_of(module, function, work.entry));
    sj_stub_end(builder);
    patch_site(&work, work.entry, stub);
    return true;
}
