#include "agent/planner/arch/x86_64/x86_64.h"

#include "agent/planner/targets.h"

enum { LONG_JUMP_BYTES = 5, LONG_JUMP_IF_BYTES = 6, MODRM_REG_SHIFT = 3 };

/* Copies an instruction, which may have a rip-relative operand. */
static void emit_plain(sj_builder *builder, const sj_code *code, const uint8_t *bytes)
{
    if ((code->flags & SJ_CODE_RELATIVE) != 0) {
        sj_emit_relative(builder, bytes, code->length, code->field, sj_code_target(code));
    } else {
        sj_emit_copy(builder, bytes, code->length);
    }
}

/* A conditional jump in its long form, displacement zero. */
static void long_jump_if(const sj_builder *builder, const sj_code *code,
                         uint8_t bytes[LONG_JUMP_IF_BYTES])
{
    memset(bytes, 0, LONG_JUMP_IF_BYTES);
    bytes[0] = 0x0f;
    bytes[1] = 0x80 | sj_x86_64_jump_condition(builder->module, code);
}

static void emit_call(sj_builder *builder, const sj_code *code)
{
    sj_emit_push_return(builder, sj_code_end(code));
    if (code->kind == SJ_CODE_CALL) {
        sj_emit_jump(builder, sj_code_target(code));
        return;
    }
    /* FF /2 becomes FF /4: the same operand, jumped to. */
    uint8_t bytes[SJ_PATCH_MAX_BYTES] = {0};
    memcpy(bytes, builder->module->text + code->at, code->length);
    uint8_t opcode = 0;
    while (opcode < code->length && bytes[opcode] != 0xff) {
        opcode++;
    }
    bytes[opcode + 1] =
        (uint8_t)((bytes[opcode + 1] & ~(7 << MODRM_REG_SHIFT)) | 4 << MODRM_REG_SHIFT);
    emit_plain(builder, code, bytes);
}

void sj_emit_moved(sj_builder *builder, const sj_code *code)
{
    uint8_t jump_if[LONG_JUMP_IF_BYTES];
    if (code->kind == SJ_CODE_NOP) {
        return;
    }
    sj_emit_place(builder, code->at);
    switch (code->kind) {
    case SJ_CODE_CALL:
    case SJ_CODE_CALL_INDIRECT:
        emit_call(builder, code);
        return;
    case SJ_CODE_JUMP:
        sj_emit_jump(builder, sj_code_target(code));
        return;
    case SJ_CODE_JUMP_IF:
        long_jump_if(builder, code, jump_if);
        sj_emit_relative(builder, jump_if, sizeof(jump_if), 2, sj_code_target(code));
        return;
    default:
        emit_plain(builder, code, builder->module->text + code->at);
    }
}

void sj_emit_to_label(sj_builder *builder, const sj_code *code, uint32_t label)
{
    uint8_t bytes[LONG_JUMP_IF_BYTES] = {0xe9};
    uint8_t size = LONG_JUMP_BYTES;
    sj_emit_place(builder, code->at);
    if (code->kind == SJ_CODE_JUMP_IF) {
        long_jump_if(builder, code, bytes);
        size = LONG_JUMP_IF_BYTES;
    }
    sj_emit_copy_to_label(builder, bytes, size, (uint8_t)(size - sizeof(int32_t)), label);
}

/* The probe in front of an exit: a return, or a jump that is going to be taken. */
static void emit_leave(sj_builder *builder, const sj_code *exit)
{
    const sj_module *module = builder->module;
    bool has_dead_flags = false;
    if (exit->kind == SJ_CODE_RETURN) {
        has_dead_flags = module->ranges[builder->function].dead_flags_at_return;
    } else if (exit->kind == SJ_CODE_JUMP || exit->kind == SJ_CODE_JUMP_IF) {
        has_dead_flags = sj_flags_are_dead(module, sj_code_target(exit));
    }
    sj_emit_probe(builder, SJ_OPERATION_LEAVE, has_dead_flags);
}

/* The function that a jump to an offset calls, when the flags need not be kept until then; or
 * none. */
static uint32_t callee_at(const sj_module *module, int64_t target)
{
    const uint32_t callee = sj_module_range_at(module, target);
    const bool is_start = callee != SJ_CODE_RANGE_NONE && target == module->ranges[callee].start &&
                          module->ranges[callee].parent == callee;
    return is_start && module->ranges[callee].dead_flags_at_entry ? callee : SJ_CODE_RANGE_NONE;
}

void sj_emit_exit(sj_builder *builder, const sj_code *code)
{
    const uint32_t callee = code->kind == SJ_CODE_JUMP
                                ? callee_at(builder->module, sj_code_target(code))
                                : SJ_CODE_RANGE_NONE;
    sj_emit_place(builder, code->at);
    if (callee != SJ_CODE_RANGE_NONE) {
        sj_emit_tail_call(builder, callee);
    } else {
        emit_leave(builder, code);
        sj_emit_moved(builder, code);
    }
}

uint32_t sj_emit_leave_stub(sj_builder *builder, const sj_code *jump, const sj_code *exit)
{
    const uint32_t stub = sj_stub_begin(builder);
    const uint32_t callee = callee_at(builder->module, sj_code_target(jump));
    sj_emit_place(builder, jump->at);
    if (exit != jump) {
        sj_emit_exit(builder, exit);
    } else if (callee != SJ_CODE_RANGE_NONE) {
        sj_emit_tail_call(builder, callee);
    } else {
        emit_leave(builder, jump);
        sj_emit_jump(builder, sj_code_target(jump));
    }
    sj_stub_end(builder);
    return stub;
}

uint32_t sj_emit_window(sj_builder *builder, const sj_code_range *range, const sj_window *window,
                        bool is_at_entry)
{
    const sj_code *codes = builder->module->codes;
    uint32_t leave_stubs[SJ_PATCH_MAX_BYTES] = {0};
    for (uint32_t i = window->first; i <= window->last; i++) {
        const sj_code *exit =
            sj_leaving_code(builder, &codes[i], sj_exit_of(builder->module, range, &codes[i]));
        if (codes[i].kind == SJ_CODE_JUMP_IF && exit != NULL) {
            leave_stubs[i - window->first] = sj_emit_leave_stub(builder, &codes[i], exit);
        }
    }
    const uint32_t stub = sj_stub_begin(builder);
    if (is_at_entry) {
        sj_emit_enter(builder);
    }
    for (uint32_t i = window->first; i <= window->last; i++) {
        const sj_code *code = &codes[i];
        const sj_code *exit =
            sj_leaving_code(builder, code, sj_exit_of(builder->module, range, code));
        if (exit == NULL) {
            sj_emit_moved(builder, code);
        } else if (code->kind == SJ_CODE_JUMP_IF) {
            sj_emit_place(builder, code->at);
            sj_emit_jump_if_stub(builder, sj_x86_64_jump_condition(builder->module, code),
                                 leave_stubs[i - window->first]);
        } else {
            sj_emit_exit(builder, exit);
        }
    }
    const sj_code *last = &codes[window->last];
    if (!sj_code_is_final(last) && last->kind != SJ_CODE_CALL &&
        last->kind != SJ_CODE_CALL_INDIRECT) {
        sj_emit_place(builder, sj_code_end(last));
        sj_emit_jump(builder, sj_code_end(last));
    }
    sj_stub_end(builder);
    return stub;
}
