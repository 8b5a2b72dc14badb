#include "agent/runtimes/jvm/code_rewrite.h"

#include "agent/runtimes/jvm/bytecode.h"
#include "agent/runtimes/jvm/code_layout.h"
#include "agent/runtimes/jvm/line_table.h"
#include "agent/runtimes/jvm/stack_map.h"

#include <stdlib.h>

/* PROBE_STACK: a probe in a handler needs the exception and the id on the stack. */
enum { EXCEPTION_BYTES = 8, SHORT_ID_MAX = INT16_MAX, PROBE_STACK = 2 };

/* The content of a Code attribute. */
typedef struct code_parts {
    uint16_t max_stack;
    uint16_t max_locals;
    sj_slice code;
    uint16_t exception_count;
    sj_slice exceptions;
    sj_slice attributes; /* From attributes_count on. */
} code_parts;

/* The rewriting of one method. */
typedef struct code_run {
    const sj_class_file *file;
    const sj_probe_constants *constants;
    uint32_t function;
    code_parts parts;
    sj_value_code values; /* Code that is inserted before each probe. */
    uint8_t *line_starts; /* [code size] See sj_code_growth. Owned. */
    sj_code_layout layout;
    sj_be_output *output;
    size_t code_at; /* Start of the new code in the output. */
    bool is_far;    /* True if a jump's new distance does not fit into 16 bits. */
} code_run;

static sj_slice read_slice(sj_reader *reader, size_t size)
{
    const uint8_t *data = sj_read_bytes(reader, size);
    return data != NULL ? (sj_slice){data, size} : (sj_slice){0};
}

static bool read_parts(const sj_class_file *file, const sj_class_method *method, code_parts *parts)
{
    sj_reader reader = sj_reader_of(file->bytes.data + method->code, method->code_bytes);
    parts->max_stack = sj_read_be16(&reader);
    parts->max_locals = sj_read_be16(&reader);
    parts->code = read_slice(&reader, sj_read_be32(&reader));
    parts->exception_count = sj_read_be16(&reader);
    parts->exceptions = read_slice(&reader, (size_t)parts->exception_count * EXCEPTION_BYTES);
    parts->attributes = read_slice(&reader, sj_reader_left(&reader));
    return !reader.bad && parts->code.size != 0 &&
           parts->max_stack <= UINT16_MAX - PROBE_STACK - SJ_VALUE_CODE_STACK;
}

static void put_id(code_run *run)
{
    if (run->function <= SHORT_ID_MAX) {
        sj_be_put8(run->output, SJ_BYTECODE_SIPUSH);
        sj_be_put16(run->output, (uint16_t)run->function);
    } else {
        sj_be_put8(run->output, SJ_BYTECODE_LDC_W);
        sj_be_put16(run->output, run->constants->values.id);
    }
}

static void put_probe(code_run *run, const sj_be_output *values, uint16_t method)
{
    sj_be_put(run->output, values->data, values->size);
    put_id(run);
    sj_be_put8(run->output, SJ_BYTECODE_INVOKESTATIC);
    sj_be_put16(run->output, method);
}

static void put_line(code_run *run, uint32_t at)
{
    if (sj_code_layout_line(&run->layout, at) != 0) {
        sj_be_put8(run->output, SJ_BYTECODE_SIPUSH);
        sj_be_put16(run->output, (uint16_t)at);
        put_id(run);
        sj_be_put8(run->output, SJ_BYTECODE_INVOKESTATIC);
        sj_be_put16(run->output, run->constants->values.natives[SJ_JAVA_LINE]);
    }
}

/* Writes the new distance of a jump at old offset `from`. Returns false if its target is not an
 * instruction. Call it before the jump's opcode is written: the new distance is measured from the
 * end of the output. */
static bool move_jump(const code_run *run, uint32_t from, int64_t distance, int32_t *moved)
{
    const int64_t to = (int64_t)from + distance;
    const uint16_t place = to < 0 ? SJ_CODE_NOWHERE : sj_code_layout_at(&run->layout, (uint64_t)to);
    const size_t here = run->output->size - run->code_at;
    *moved = (int32_t)place - (int32_t)here;
    return place != SJ_CODE_NOWHERE && (uint64_t)to < run->parts.code.size;
}

static bool put_jump(code_run *run, const sj_bytecode *instruction)
{
    sj_reader operands =
        sj_reader_of(run->parts.code.data + instruction->at + 1, instruction->size - 1);
    const bool is_wide = instruction->kind == SJ_BYTECODE_WIDE_JUMP;
    const int64_t distance =
        is_wide ? (int32_t)sj_read_be32(&operands) : (int16_t)sj_read_be16(&operands);
    int32_t moved;
    if (!move_jump(run, instruction->at, distance, &moved)) {
        return false;
    }
    sj_be_put8(run->output, instruction->opcode);
    if (is_wide) {
        sj_be_put32(run->output, (uint32_t)moved);
    } else {
        run->is_far = run->is_far || moved != (int16_t)moved;
        sj_be_put16(run->output, (uint16_t)moved);
    }
    return true;
}

static bool put_switch(code_run *run, const sj_bytecode *instruction)
{
    const uint32_t end = instruction->at + instruction->size;
    const size_t here = run->output->size - run->code_at;
    sj_reader operands =
        sj_reader_of(run->parts.code.data + instruction->table, end - instruction->table);
    const bool is_table = instruction->opcode == SJ_BYTECODE_TABLESWITCH;
    /* move_jump measures from the end of run->output. So the switch is written through a copy, and
     * run->output keeps its end until the switch is complete. */
    sj_be_output jumps = *run->output;
    int32_t moved;
    if (!move_jump(run, instruction->at, (int32_t)sj_read_be32(&operands), &moved)) {
        return false;
    }
    sj_be_put8(&jumps, instruction->opcode);
    sj_be_put(&jumps, "\0\0", sj_bytecode_padding((uint32_t)here));
    sj_be_put32(&jumps, (uint32_t)moved);
    sj_be_put32(&jumps, sj_read_be32(&operands)); /* Low, or the number of pairs. */
    if (is_table) {
        sj_be_put32(&jumps, sj_read_be32(&operands)); /* High. */
    }
    bool is_sound = true;
    while (is_sound && sj_reader_left(&operands) > 0) {
        if (!is_table) {
            sj_be_put32(&jumps, sj_read_be32(&operands)); /* Match. */
        }
        is_sound = move_jump(run, instruction->at, (int32_t)sj_read_be32(&operands), &moved);
        sj_be_put32(&jumps, (uint32_t)moved);
    }
    *run->output = jumps;
    return is_sound && !operands.bad;
}

static bool put_instructions(code_run *run)
{
    sj_bytecode instruction;
    put_probe(run, &run->values.entry, run->constants->enter);
    for (uint32_t at = 0; at < run->parts.code.size; at += instruction.size) {
        if (sj_bytecode_read(run->parts.code, at, &instruction) != SJ_OK) {
            return false;
        }
        bool is_sound = true;
        put_line(run, at);
        if (instruction.kind == SJ_BYTECODE_RETURN) {
            put_probe(run, &run->values.exit, run->constants->leave);
            sj_be_put8(run->output, instruction.opcode);
        } else if (instruction.kind == SJ_BYTECODE_SWITCH) {
            is_sound = put_switch(run, &instruction);
        } else if (instruction.kind == SJ_BYTECODE_PLAIN) {
            sj_be_put(run->output, run->parts.code.data + at, instruction.size);
        } else {
            is_sound = put_jump(run, &instruction);
        }
        if (!is_sound) {
            return false;
        }
    }
    if (run->layout.has_handler) {
        put_probe(run, &run->values.handler, run->constants->unwind);
        sj_be_put8(run->output, SJ_BYTECODE_ATHROW);
    }
    return true;
}

static void put_exception(code_run *run, uint32_t start, uint32_t end, uint32_t handler,
                          uint16_t type)
{
    sj_be_put16(run->output, (uint16_t)start);
    sj_be_put16(run->output, (uint16_t)end);
    sj_be_put16(run->output, (uint16_t)handler);
    sj_be_put16(run->output, type);
}

/* Writes the exception table entries of the added handler. They cover the code, also the code that
 * records values before a return, but not the exit probes and returns: there the exit is recorded
 * already. Returns the number of entries. */
static uint32_t put_own_exceptions(code_run *run)
{
    const uint32_t handler = run->layout.new_offset[run->parts.code.size];
    const uint32_t values = run->layout.growth.exit - SJ_PROBE_BYTES;
    uint32_t start = run->layout.covered_from;
    uint32_t count = 0;
    sj_bytecode instruction = {.size = 1};
    for (uint32_t at = 0; at < run->parts.code.size; at += instruction.size) {
        if (sj_bytecode_read(run->parts.code, at, &instruction) != SJ_OK) {
            return count; /* Cannot happen: put_instructions has read the same code. */
        }
        const uint32_t place = run->layout.new_offset[at] + sj_code_layout_line(&run->layout, at);
        if (instruction.kind == SJ_BYTECODE_RETURN && place >= run->layout.covered_from) {
            if (start < place + values) {
                put_exception(run, start, place + values, handler, 0);
                count++;
            }
            start = place + run->layout.growth.exit + 1;
        }
    }
    if (start < handler) {
        put_exception(run, start, handler, handler, 0);
        count++;
    }
    return count;
}

static bool put_exceptions(code_run *run)
{
    sj_reader reader = sj_reader_of(run->parts.exceptions.data, run->parts.exceptions.size);
    const size_t count_at = run->output->size;
    uint32_t count = run->parts.exception_count;
    sj_be_put16(run->output, 0);
    for (uint32_t i = 0; i < run->parts.exception_count; i++) {
        const uint16_t start = sj_code_layout_at(&run->layout, sj_read_be16(&reader));
        const uint16_t end = sj_code_layout_at(&run->layout, sj_read_be16(&reader));
        const uint16_t handler = sj_code_layout_at(&run->layout, sj_read_be16(&reader));
        if (start == SJ_CODE_NOWHERE || end == SJ_CODE_NOWHERE || handler == SJ_CODE_NOWHERE) {
            return false;
        }
        put_exception(run, start, end, handler, sj_read_be16(&reader));
    }
    count += run->layout.has_handler ? put_own_exceptions(run) : 0;
    sj_be_set16(run->output, count_at, (uint16_t)count);
    return count <= UINT16_MAX && !reader.bad;
}

/* Writes a LineNumberTable with new offsets. An entry is an offset and a line number. */
static bool put_lines(code_run *run, sj_reader *table)
{
    const uint16_t count = sj_read_be16(table);
    sj_be_put16(run->output, count);
    for (uint32_t i = 0; i < count; i++) {
        const uint16_t place = sj_code_layout_at(&run->layout, sj_read_be16(table));
        sj_be_put16(run->output, place);
        sj_be_put16(run->output, sj_read_be16(table));
        if (place == SJ_CODE_NOWHERE || table->bad) {
            return false;
        }
    }
    return true;
}

/* Writes a LocalVariableTable or LocalVariableTypeTable with new offsets. An entry is an offset, a
 * length, and six other bytes. */
static bool put_variables(code_run *run, sj_reader *table)
{
    enum { REST = 6 };
    const uint16_t count = sj_read_be16(table);
    sj_be_put16(run->output, count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = sj_read_be16(table);
        const uint32_t to = from + sj_read_be16(table);
        const uint8_t *other = sj_read_bytes(table, REST);
        const uint16_t start = sj_code_layout_at(&run->layout, from);
        const uint16_t end = sj_code_layout_at(&run->layout, to);
        if (other == NULL || start == SJ_CODE_NOWHERE || end == SJ_CODE_NOWHERE) {
            return false;
        }
        sj_be_put16(run->output, start);
        sj_be_put16(run->output, (uint16_t)(end - start));
        sj_be_put(run->output, other, REST);
    }
    return true;
}

typedef bool (*table_mover)(code_run *run, sj_reader *table);

static table_mover mover_of(sj_slice name)
{
    if (sj_class_text_is(name, "LineNumberTable")) {
        return put_lines;
    }
    return sj_class_text_is(name, "LocalVariableTable") ||
                   sj_class_text_is(name, "LocalVariableTypeTable")
               ? put_variables
               : NULL;
}

/* Writes the name, the length and the content of one attribute. `mover` writes the content. Returns
 * false if the table is damaged. */
static bool put_attribute(code_run *run, uint16_t name, table_mover mover, sj_slice table)
{
    sj_reader reader = sj_reader_of(table.data, table.size);
    sj_be_put16(run->output, name);
    const size_t length_at = run->output->size;
    sj_be_put32(run->output, 0);
    if (!mover(run, &reader)) {
        return false;
    }
    sj_be_set32(run->output, length_at, (uint32_t)(run->output->size - length_at - 4));
    return true;
}

static sj_status put_stack_map(code_run *run, sj_slice old)
{
    sj_be_put16(run->output, run->constants->stack_map_name);
    const size_t length_at = run->output->size;
    sj_be_put32(run->output, 0);
    SJ_TRY(sj_stack_map_move(old, &run->layout, run->constants->throwable, run->output));
    sj_be_set32(run->output, length_at, (uint32_t)(run->output->size - length_at - 4));
    return SJ_OK;
}

/* Writes the attributes of the code. Leaves out attributes that the JVM does not read, for example
 * type annotations, because their offsets would be wrong. */
static sj_status put_attributes(code_run *run)
{
    sj_reader reader = sj_reader_of(run->parts.attributes.data, run->parts.attributes.size);
    const size_t count_at = run->output->size;
    uint16_t count = 0;
    sj_slice stack_map = {0};
    sj_be_put16(run->output, 0);
    for (uint16_t left = sj_read_be16(&reader); left > 0 && !reader.bad; left--) {
        const uint16_t name_index = sj_read_be16(&reader);
        const sj_slice name = sj_class_utf8(run->file, name_index);
        const sj_slice contents = read_slice(&reader, sj_read_be32(&reader));
        if (sj_class_text_is(name, "StackMapTable")) {
            stack_map = contents;
        } else if (mover_of(name) != NULL) {
            if (!put_attribute(run, name_index, mover_of(name), contents)) {
                return SJ_ECORRUPT;
            }
            count++;
        }
    }
    const bool needs_map = run->layout.has_handler || run->layout.growth.label != 0;
    if (stack_map.size != 0 || (needs_map && run->file->major >= SJ_CLASS_STACK_MAPS_SINCE)) {
        SJ_TRY(put_stack_map(run, stack_map));
        count++;
    }
    sj_be_set16(run->output, count_at, count);
    return reader.bad ? SJ_ECORRUPT : SJ_OK;
}

static sj_status put_code_attribute(code_run *run)
{
    const uint32_t added =
        PROBE_STACK + (run->values.handler.size != 0 ? (uint32_t)SJ_VALUE_CODE_STACK : 0);
    sj_be_put16(run->output, (uint16_t)(run->parts.max_stack + added));
    sj_be_put16(run->output, run->parts.max_locals);
    const size_t length_at = run->output->size;
    sj_be_put32(run->output, 0);
    run->code_at = run->output->size;
    if (!put_instructions(run)) {
        return SJ_ECORRUPT;
    }
    sj_be_set32(run->output, length_at, (uint32_t)(run->output->size - run->code_at));
    if (!put_exceptions(run)) {
        return SJ_ECORRUPT;
    }
    return put_attributes(run);
}

static sj_java_skip rewrite_code(code_run *run)
{
    const size_t start = run->output->size;
    sj_status status = put_code_attribute(run);
    if (status == SJ_EUNSUPPORTED) { /* A handler would cover an uninitialised object. */
        run->layout.has_handler = false;
        run->output->size = start;
        status = put_code_attribute(run);
    }
    sj_java_skip skip = run->is_far ? SJ_JAVA_SKIP_FAR_JUMP : SJ_JAVA_REWRITTEN;
    if (status != SJ_OK) {
        skip = SJ_JAVA_SKIP_DAMAGED;
    }
    run->output->size = skip != SJ_JAVA_REWRITTEN ? start : run->output->size;
    return skip;
}

static sj_java_skip skip_reason_of(sj_status status)
{
    return status == SJ_ELIMIT ? SJ_JAVA_SKIP_TOO_LARGE : SJ_JAVA_SKIP_DAMAGED;
}

static void mark_line(void *context, uint32_t place, uint32_t line)
{
    code_run *run = context;
    (void)line;
    /* The line probe pushes the offset by sipush, which holds at most INT16_MAX. */
    if (place < run->parts.code.size && place <= INT16_MAX) {
        run->line_starts[place] = 1;
    }
}

/* Creates the code that records values, and computes the new offset of each instruction. */
static sj_status compute_layout(code_run *run, const sj_class_method *method,
                                const sj_java_values *values)
{
    if (values->lines) {
        run->line_starts = calloc(run->parts.code.size, 1);
        if (run->line_starts == NULL) {
            return SJ_ENOMEM;
        }
        sj_line_table_visit(run->file, method, run, mark_line);
    }
    SJ_TRY(
        sj_value_code_make(method, run->function, values, &run->constants->values, &run->values));
    const sj_code_growth growth = {.entry = (uint32_t)run->values.entry.size + SJ_PROBE_BYTES,
                                   .exit = (uint32_t)run->values.exit.size + SJ_PROBE_BYTES,
                                   .handler =
                                       (uint32_t)run->values.handler.size + SJ_PROBE_BYTES + 1,
                                   .label = run->values.label,
                                   .line = SJ_LINE_PROBE_BYTES,
                                   .line_starts = run->line_starts};
    return sj_code_layout_make(run->file, method, run->parts.code, &growth, &run->layout);
}

sj_java_skip sj_code_rewrite(const sj_class_file *file, const sj_class_method *method,
                             uint32_t function, const sj_java_values *values,
                             const sj_probe_constants *constants, sj_be_output *output)
{
    code_run run = {.file = file, .constants = constants, .function = function, .output = output};
    if (method->code == 0) {
        return SJ_JAVA_SKIP_NO_CODE;
    }
    if (!read_parts(file, method, &run.parts)) {
        return SJ_JAVA_SKIP_DAMAGED;
    }
    const sj_status status = compute_layout(&run, method, values);
    const sj_java_skip skip = status == SJ_OK ? rewrite_code(&run) : skip_reason_of(status);
    sj_code_layout_deinit(&run.layout);
    sj_value_code_deinit(&run.values);
    free(run.line_starts);
    return skip;
}
