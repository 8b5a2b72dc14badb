#include "agent/planner/builder.h"

#include "agent/planner/growable.h"
#include "agent/planner/targets.h"

/* Design notes. A stub is written as operations (plan.h), because the agent has no disassembler:
 * every displacement is named, short jumps become long ones, and a call in a head becomes a push of
 * the true return address and a jump. Stubs that others lead to are made before them. */

enum { OPERATION_MAX_BYTES = 64, LONG_JUMP_BYTES = 5, LONG_JUMP_IF_BYTES = 6, MODRM_REG_SHIFT = 3 };

static sj_writer begin_operation(sj_builder *builder, sj_plan_operation operation)
{
    if (builder->status == SJ_OK) {
        builder->status = sj_grow(&builder->operations, &builder->operations_capacity,
                                  builder->operations_bytes, OPERATION_MAX_BYTES, 1);
    }
    if (builder->status != SJ_OK) {
        sj_writer failed = {.bad = true};
        return failed;
    }
    sj_writer writer =
        sj_writer_of(builder->operations + builder->operations_bytes, OPERATION_MAX_BYTES);
    sj_write_u8(&writer, (uint8_t)operation);
    return writer;
}

static void end_operation(sj_builder *builder, const sj_writer *writer, uint32_t code_bytes)
{
    if (!writer->bad) {
        builder->operations_bytes += sj_writer_used(writer);
        builder->stubs[builder->stub_count - 1].code_bytes += code_bytes;
    }
}

uint32_t sj_stub_begin(sj_builder *builder)
{
    if (builder->status == SJ_OK) {
        builder->status = sj_grow(&builder->stubs, &builder->stub_capacity, builder->stub_count, 1,
                                  sizeof(*builder->stubs));
    }
    if (builder->status != SJ_OK) {
        return 0;
    }
    builder->stubs[builder->stub_count] = (sj_plan_stub){
        .function = builder->function, .operations = (uint32_t)builder->operations_bytes};
    return (uint32_t)builder->stub_count++;
}

void sj_stub_end(sj_builder *builder)
{
    if (builder->status == SJ_OK) {
        sj_plan_stub *stub = &builder->stubs[builder->stub_count - 1];
        stub->operations_bytes = (uint32_t)builder->operations_bytes - stub->operations;
    }
}

void sj_emit_probe(sj_builder *builder, sj_plan_operation operation, bool frees_flags)
{
    if (frees_flags) {
        const sj_writer writer = begin_operation(builder, SJ_OPERATION_FREE_FLAGS);
        end_operation(builder, &writer, 0);
    }
    const sj_writer writer = begin_operation(builder, operation);
    end_operation(builder, &writer, SJ_PLAN_PROBE_BYTES);
}

void sj_emit_enter(sj_builder *builder)
{
    const sj_piece *function = &builder->module->pieces[builder->function];
    sj_emit_probe(builder, SJ_OPERATION_ENTER, function->frees_flags_at_head);
}

/* The probe in front of an exit: a return, or a jump that is going to be taken. */
static void emit_leave(sj_builder *builder, const sj_code *exit)
{
    const sj_module *module = builder->module;
    bool frees_flags = false;
    if (exit->kind == SJ_CODE_RETURN) {
        frees_flags = module->pieces[builder->function].frees_flags_at_return;
    } else if (exit->kind == SJ_CODE_JUMP || exit->kind == SJ_CODE_JUMP_IF) {
        frees_flags = sj_flags_are_free(module, sj_code_target(exit));
    }
    sj_emit_probe(builder, SJ_OPERATION_LEAVE, frees_flags);
}

/* The function that a jump to an offset calls, when the flags need not be kept until then; or
 * none. */
static uint32_t callee_at(const sj_module *module, int64_t target)
{
    const uint32_t callee = sj_module_piece_at(module, target);
    const bool is_start = callee != SJ_PIECE_NONE && target == module->pieces[callee].start &&
                          module->pieces[callee].parent == callee;
    return is_start && module->pieces[callee].frees_flags_at_head ? callee : SJ_PIECE_NONE;
}

static void emit_tail_call(sj_builder *builder, uint32_t callee)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_TAIL_CALL);
    sj_write_varint(&writer, callee);
    end_operation(builder, &writer, SJ_PLAN_PROBE_BYTES + SJ_PLAN_JUMP_BYTES);
}

static int64_t address_of(const sj_builder *builder, int64_t offset)
{
    return (int64_t)sj_module_address(builder->module, offset);
}

void sj_emit_jump(sj_builder *builder, int64_t target)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_JUMP);
    sj_write_zigzag(&writer, address_of(builder, target));
    end_operation(builder, &writer, SJ_PLAN_JUMP_BYTES);
}

void sj_emit_label(sj_builder *builder, uint32_t label)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_LABEL);
    sj_write_varint(&writer, label);
    end_operation(builder, &writer, 0);
}

void sj_emit_jump_if_stub(sj_builder *builder, uint8_t condition, uint32_t stub)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_JUMP_IF_STUB);
    sj_write_varint(&writer, condition);
    sj_write_varint(&writer, stub);
    end_operation(builder, &writer, SJ_PLAN_JUMP_BYTES);
}

void sj_emit_copy(sj_builder *builder, const uint8_t *bytes, uint8_t size)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_COPY);
    sj_write_varint(&writer, size);
    sj_write_bytes(&writer, bytes, size);
    end_operation(builder, &writer, size);
}

void sj_emit_relative(sj_builder *builder, const uint8_t *bytes, uint8_t size, uint8_t field,
                      int64_t target)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_COPY_RELATIVE);
    sj_write_varint(&writer, size);
    sj_write_bytes(&writer, bytes, size);
    sj_write_varint(&writer, field);
    sj_write_zigzag(&writer, address_of(builder, target));
    end_operation(builder, &writer, size);
}

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
    bytes[1] = 0x80 | sj_jump_condition(builder->module, code);
}

void sj_emit_push_return(sj_builder *builder, int64_t address)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_PUSH_RETURN);
    sj_write_zigzag(&writer, address_of(builder, address));
    end_operation(builder, &writer, SJ_PLAN_PUSH_BYTES);
}

void sj_emit_jump_stub(sj_builder *builder, uint32_t stub)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_JUMP_STUB);
    sj_write_varint(&writer, stub);
    end_operation(builder, &writer, SJ_PLAN_JUMP_BYTES);
}

uint32_t sj_emit_dispatch_stub(sj_builder *builder)
{
    const uint32_t stub = sj_stub_begin(builder);
    const sj_writer writer = begin_operation(builder, SJ_OPERATION_DISPATCH);
    end_operation(builder, &writer, SJ_PLAN_DISPATCH_BYTES);
    sj_stub_end(builder);
    return stub;
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
    switch (code->kind) {
    case SJ_CODE_NOP:
        return;
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

void sj_emit_copy_to_label(sj_builder *builder, const uint8_t *bytes, uint8_t size, uint8_t field,
                           uint32_t label)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_COPY_TO_LABEL);
    sj_write_varint(&writer, size);
    sj_write_bytes(&writer, bytes, size);
    sj_write_varint(&writer, field);
    sj_write_varint(&writer, label);
    end_operation(builder, &writer, size);
}

void sj_emit_to_label(sj_builder *builder, const sj_code *code, uint32_t label)
{
    uint8_t bytes[LONG_JUMP_IF_BYTES] = {0xe9};
    uint8_t size = LONG_JUMP_BYTES;
    if (code->kind == SJ_CODE_JUMP_IF) {
        long_jump_if(builder, code, bytes);
        size = LONG_JUMP_IF_BYTES;
    }
    sj_emit_copy_to_label(builder, bytes, size, (uint8_t)(size - sizeof(int32_t)), label);
}

void sj_emit_exit(sj_builder *builder, const sj_code *code)
{
    const uint32_t callee = code->kind == SJ_CODE_JUMP
                                ? callee_at(builder->module, sj_code_target(code))
                                : SJ_PIECE_NONE;
    if (callee != SJ_PIECE_NONE) {
        emit_tail_call(builder, callee);
    } else {
        emit_leave(builder, code);
        sj_emit_moved(builder, code);
    }
}

uint32_t sj_emit_leave_stub(sj_builder *builder, const sj_code *jump, const sj_code *exit)
{
    const uint32_t stub = sj_stub_begin(builder);
    const uint32_t callee = callee_at(builder->module, sj_code_target(jump));
    if (exit != jump) {
        sj_emit_exit(builder, exit);
    } else if (callee != SJ_PIECE_NONE) {
        emit_tail_call(builder, callee);
    } else {
        emit_leave(builder, jump);
        sj_emit_jump(builder, sj_code_target(jump));
    }
    sj_stub_end(builder);
    return stub;
}

uint32_t sj_emit_window(sj_builder *builder, const sj_piece *piece, const sj_window *window,
                        bool is_head)
{
    const sj_code *codes = builder->module->codes;
    uint32_t leave_stubs[SJ_PATCH_MAX_BYTES] = {0};
    for (uint32_t i = window->first; i <= window->last; i++) {
        const sj_code *exit =
            sj_leaving_code(builder, &codes[i], sj_exit_of(builder->module, piece, &codes[i]));
        if (codes[i].kind == SJ_CODE_JUMP_IF && exit != NULL) {
            leave_stubs[i - window->first] = sj_emit_leave_stub(builder, &codes[i], exit);
        }
    }
    const uint32_t stub = sj_stub_begin(builder);
    if (is_head) {
        sj_emit_enter(builder);
    }
    for (uint32_t i = window->first; i <= window->last; i++) {
        const sj_code *code = &codes[i];
        const sj_code *exit =
            sj_leaving_code(builder, code, sj_exit_of(builder->module, piece, code));
        if (exit == NULL) {
            sj_emit_moved(builder, code);
        } else if (code->kind == SJ_CODE_JUMP_IF) {
            sj_emit_jump_if_stub(builder, sj_jump_condition(builder->module, code),
                                 leave_stubs[i - window->first]);
        } else {
            sj_emit_exit(builder, exit);
        }
    }
    const sj_code *last = &codes[window->last];
    if (!sj_code_is_final(last) && last->kind != SJ_CODE_CALL &&
        last->kind != SJ_CODE_CALL_INDIRECT) {
        sj_emit_jump(builder, sj_code_end(last));
    }
    sj_stub_end(builder);
    return stub;
}
