#include "agent/planner/builder.h"

#include "agent/planner/targets.h"
#include "proto/base/array.h"

/* Design notes. A stub is a list of operations (plan.h), because the agent has no disassembler. The
 * operations describe every displacement. A short jump becomes a long jump. A call at an entry
 * becomes a push of the original return address and a jump. A stub that other stubs jump to is made
 * before them. */

enum { OPERATION_MAX_BYTES = 64, LONG_JUMP_BYTES = 5, LONG_JUMP_IF_BYTES = 6, MODRM_REG_SHIFT = 3 };

static sj_writer reserve_operation(sj_builder *builder)
{
    if (builder->status == SJ_OK) {
        builder->status = sj_array_reserve(&builder->operations, &builder->operations_capacity,
                                           builder->operations_bytes, OPERATION_MAX_BYTES, 1);
    }
    return builder->status == SJ_OK
               ? sj_writer_of(builder->operations + builder->operations_bytes, OPERATION_MAX_BYTES)
               : (sj_writer){.bad = true};
}

static sj_writer begin_operation(sj_builder *builder, sj_plan_operation operation)
{
    sj_writer writer = reserve_operation(builder);
    sj_write_u8(&writer, (uint8_t)operation);
    return writer;
}

/* Adds a written operation to the open stub. `code_bytes` is an upper bound of the size of its
 * code. */
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
    builder->place = builder->function < builder->module->range_count
                         ? builder->module->ranges[builder->function].start
                         : SJ_CODE_RANGE_NONE;
    return (uint32_t)builder->stub_count++;
}

void sj_stub_end(sj_builder *builder)
{
    if (builder->status == SJ_OK) {
        sj_plan_stub *stub = &builder->stubs[builder->stub_count - 1];
        stub->operations_bytes = (uint32_t)builder->operations_bytes - stub->operations;
    }
}

void sj_emit_place(sj_builder *builder, uint32_t at)
{
    if (at != builder->place) {
        const sj_code_range *function = &builder->module->ranges[builder->function];
        sj_writer writer = begin_operation(builder, SJ_OPERATION_PLACE);
        sj_write_zigzag(&writer, (int64_t)at - function->start);
        end_operation(builder, &writer, 0);
        builder->place = at;
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

static void write_jump_leave(sj_builder *builder, uint32_t jump_register, const uint8_t *bytes,
                             uint8_t size, uint8_t field, int64_t target)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_JUMP_LEAVE);
    sj_write_varint(&writer, jump_register);
    sj_write_varint(&writer, size);
    sj_write_bytes(&writer, bytes, size);
    sj_write_varint(&writer, field);
    sj_write_zigzag(&writer, field != 0 ? address_of(builder, target) : 0);
    end_operation(builder, &writer, size + SJ_PLAN_PROBE_BYTES);
}

void sj_emit_jump_leave(sj_builder *builder, uint32_t jump_register)
{
    write_jump_leave(builder, jump_register, NULL, 0, 0, 0);
}

void sj_emit_stored_jump_leave(sj_builder *builder, const uint8_t *bytes, uint8_t size,
                               uint8_t field, int64_t target)
{
    write_jump_leave(builder, 0, bytes, size, field, target);
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

/* Writes the number of a stub, and adds its position to builder->uses. */
static void write_stub(sj_builder *builder, sj_writer *writer, uint32_t stub)
{
    if (builder->status == SJ_OK) {
        builder->status = sj_array_reserve(&builder->uses, &builder->use_capacity,
                                           builder->use_count, 1, sizeof(*builder->uses));
    }
    if (builder->status == SJ_OK) {
        builder->uses[builder->use_count++] =
            (sj_stub_use){.at = builder->operations_bytes + sj_writer_used(writer), .stub = stub};
    }
    sj_write_varint(writer, stub);
}

void sj_emit_jump_if_stub(sj_builder *builder, uint8_t condition, uint32_t stub)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_JUMP_IF_STUB);
    sj_write_varint(&writer, condition);
    write_stub(builder, &writer, stub);
    end_operation(builder, &writer, SJ_PLAN_JUMP_BYTES);
}

void sj_emit_copy(sj_builder *builder, const uint8_t *bytes, uint8_t size)
{
    sj_writer writer = begin_operation(builder, SJ_OPERATION_COPY);
    sj_write_varint(&writer, size);
    sj_write_bytes(&writer, bytes, size);
    end_operation(builder, &writer, size);
    builder->place += size;
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
    builder->place += size;
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
    write_stub(builder, &writer, stub);
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
    builder->place += size;
}

static size_t varint_bytes(uint32_t value)
{
    size_t bytes = 1;
    while ((value >>= 7) != 0) {
        bytes++;
    }
    return bytes;
}

/* Appends the bytes `from` to `end` of another builder's operations. */
static void append_operations(sj_builder *builder, const sj_builder *other, size_t from, size_t end)
{
    if (builder->status == SJ_OK) {
        builder->status = sj_array_reserve(&builder->operations, &builder->operations_capacity,
                                           builder->operations_bytes, end - from, 1);
    }
    if (builder->status == SJ_OK && end > from) {
        memcpy(builder->operations + builder->operations_bytes, other->operations + from,
               end - from);
        builder->operations_bytes += end - from;
    }
}

/* Appends a stub number. It may be longer than before, because more stubs precede the stub. */
static void append_number(sj_builder *builder, uint32_t stub)
{
    sj_writer writer = reserve_operation(builder);
    write_stub(builder, &writer, stub);
    builder->operations_bytes += writer.bad ? 0 : sj_writer_used(&writer);
}

/* Appends a stub. `use` is the index of the first stub number at or after the stub's start. Returns
 * the index of the first one after the stub. */
static size_t append_stub(sj_builder *builder, const sj_builder *other, const sj_plan_stub *stub,
                          size_t use, uint32_t stub_base)
{
    sj_plan_stub *added = &builder->stubs[builder->stub_count++];
    const size_t end = (size_t)stub->operations + stub->operations_bytes;
    size_t at = stub->operations;
    *added = *stub;
    added->operations = (uint32_t)builder->operations_bytes;
    for (; use < other->use_count && other->uses[use].at < end; use++) {
        const sj_stub_use *number = &other->uses[use];
        append_operations(builder, other, at, number->at);
        append_number(builder, stub_base + number->stub);
        at = number->at + varint_bytes(number->stub);
    }
    append_operations(builder, other, at, end);
    added->operations_bytes = (uint32_t)(builder->operations_bytes - added->operations);
    return use;
}

sj_status sj_builder_append(sj_builder *builder, const sj_builder *other, uint32_t first,
                            uint32_t last)
{
    const uint32_t stub_base = (uint32_t)builder->stub_count;
    const uint32_t patch_base = (uint32_t)builder->patch_count;
    size_t use = 0;
    SJ_TRY(other->status);
    SJ_TRY(sj_array_reserve(&builder->stubs, &builder->stub_capacity, builder->stub_count,
                            other->stub_count, sizeof(*builder->stubs)));
    SJ_TRY(sj_array_reserve(&builder->patches, &builder->patch_capacity, builder->patch_count,
                            other->patch_count, sizeof(*builder->patches)));
    for (size_t i = 0; i < other->stub_count; i++) {
        use = append_stub(builder, other, &other->stubs[i], use, stub_base);
    }
    for (size_t i = 0; i < other->patch_count; i++) {
        sj_plan_patch *patch = &builder->patches[builder->patch_count++];
        *patch = other->patches[i];
        patch->stub += stub_base;
        patch->via += patch->kind == SJ_PATCH_JUMP8 ? patch_base : 0;
    }
    for (uint32_t i = first; i < last; i++) {
        sj_plan_function *function = &builder->functions[i];
        function->first_patch += function->technique != SJ_TECHNIQUE_NONE ? patch_base : 0;
    }
    return builder->status;
}
