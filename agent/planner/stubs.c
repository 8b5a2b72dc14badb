#include "agent/planner/builder.h"

#include "agent/planner/targets.h"
#include "proto/base/array.h"

/* Design notes. A stub is written as operations (plan.h), because the agent has no disassembler:
 * every displacement is named, short jumps become long ones, and a call in an entry becomes a push
 * of the true return address and a jump. Stubs that others lead to are made before them. */

enum { OPERATION_MAX_BYTES = 64, LONG_JUMP_BYTES = 5, LONG_JUMP_IF_BYTES = 6, MODRM_REG_SHIFT = 3 };

static sj_writer begin_operation(sj_builder *builder, sj_plan_operation operation)
{
    if (builder->status == SJ_OK) {
        builder->status = sj_array_reserve(&builder->operations, &builder->operations_capacity,
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
        builder->status = sj_array_reserve(&builder->stubs, &builder->stub_capacity,
                                           builder->stub_count, 1, sizeof(*builder->stubs));
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

void sj_emit_probe(sj_builder *builder, sj_plan_operation operation, bool has_dead_flags)
{
    if (has_dead_flags) {
        const sj_writer writer = begin_operation(builder, SJ_OPERATION_FREE_FLAGS);
        end_operation(builder, &writer, 0);
    }
    const sj_writer writer = begin_operation(builder, operation);
    end_operation(builder, &writer, SJ_PLAN_PROBE_BYTES);
}

void sj_emit_enter(sj_builder *builder)
{
    const sj_code_range *function = &builder->module->ranges[builder->function];
    sj_emit_probe(builder, SJ_OPERATION_ENTER, function->dead_flags_at_entry);
}

void sj_emit_tail_call(sj_builder *builder, uint32_t callee)
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
