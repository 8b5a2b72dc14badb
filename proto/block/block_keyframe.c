/* The key-frame column.
 *
 * The column stores the key-frame field by field. Each field has one value per frame, outermost
 * frame first. A value is stored as its zigzag difference to the value before it, modulo 2^64. The
 * first value of a field is stored as its difference to 0. Start times count time units since
 * first_ticks.
 *
 * After two equal differences in a row, a varint gives the number of further equal ones. So a deep
 * recursion at a constant stack distance costs a few bytes. A field whose neighboring differences
 * are never equal costs nothing extra.
 *
 * varint time unit (of start times) | functions | stacks | call indexes | start times | callee
 * times | flags */
#include "proto/block/block_internal.h"

typedef struct delta_writer {
    sj_writer *writer;
    uint64_t previous;
    int64_t last_delta;
    uint64_t repeats; /* number of times that last_delta occurred after the two written ones */
    unsigned equal;   /* length of the latest run of equal differences, at most 2 */
} delta_writer;

static void end_repeats(delta_writer *column)
{
    if (column->equal == 2) {
        sj_write_varint(column->writer, column->repeats);
    }
    column->equal = 0;
    column->repeats = 0;
}

static void write_delta(delta_writer *column, uint64_t value)
{
    const int64_t delta = (int64_t)(value - column->previous);
    column->previous = value;
    if (column->equal != 0 && delta == column->last_delta) {
        if (column->equal == 2) {
            column->repeats++;
            return;
        }
        column->equal = 2;
    } else {
        end_repeats(column);
        column->equal = 1;
    }
    column->last_delta = delta;
    sj_write_zigzag(column->writer, delta);
}

typedef struct delta_reader {
    sj_reader *reader;
    uint64_t previous;
    int64_t last_delta;
    uint64_t repeats;
    unsigned equal;
} delta_reader;

static uint64_t read_delta(delta_reader *column)
{
    if (column->equal == 2 && column->repeats > 0) {
        column->repeats--;
    } else {
        const int64_t delta = sj_read_zigzag(column->reader);
        column->equal = column->equal == 1 && delta == column->last_delta ? 2 : 1;
        column->last_delta = delta;
        if (column->equal == 2) {
            column->repeats = sj_read_varint(column->reader);
        }
    }
    column->previous += (uint64_t)column->last_delta;
    return column->previous;
}

/* Returns the time unit of the start times, in ticks: `step` if all of them are whole steps away
 * from first_ticks, else 1. */
static uint64_t choose_unit(const sj_stack_frame *frames, size_t count, uint64_t first_ticks,
                            uint32_t step)
{
    for (size_t i = 0; i < count; i++) {
        if ((int64_t)(frames[i].start_ticks - first_ticks) % (int64_t)step != 0) {
            return 1;
        }
    }
    return step;
}

/* The fields of a frame, in the order in which the column stores them. */
typedef enum frame_field {
    FIELD_FUNCTION,
    FIELD_STACK,
    FIELD_CALL_INDEX,
    FIELD_START,
    FIELD_CHILD_TICKS,
    FIELD_FLAGS,
    FIELDS
} frame_field;

static uint64_t field_of(const sj_stack_frame *frame, frame_field field)
{
    switch (field) {
    case FIELD_FUNCTION:
        return frame->function;
    case FIELD_STACK:
        return frame->stack;
    case FIELD_CALL_INDEX:
        return frame->call_index;
    case FIELD_START:
        return frame->start_ticks;
    case FIELD_CHILD_TICKS:
        return frame->child_ticks;
    case FIELD_FLAGS:
        return frame->flags & ~(uint32_t)SJ_CALL_UNTIMED; /* SJ_COLUMN_UNTIMED stores it */
    case FIELDS:
        break;
    }
    return 0;
}

void sj_keyframe_encode(const sj_stack_frame *frames, size_t count, uint64_t first_ticks,
                        uint32_t step, sj_writer *writer)
{
    const uint64_t unit = choose_unit(frames, count, first_ticks, step);
    sj_write_varint(writer, unit);
    for (frame_field field = 0; field < FIELDS; field++) {
        delta_writer column = {.writer = writer};
        for (size_t i = 0; i < count; i++) {
            uint64_t value = field_of(&frames[i], field);
            if (field == FIELD_START) {
                value = (uint64_t)((int64_t)(value - first_ticks) / (int64_t)unit);
            }
            write_delta(&column, value);
        }
        end_repeats(&column);
    }
}

static bool set_field(sj_stack_frame *frame, frame_field field, uint64_t value)
{
    switch (field) {
    case FIELD_FUNCTION:
        frame->function = (uint32_t)value;
        return value <= UINT32_MAX;
    case FIELD_STACK:
        frame->stack = value;
        return true;
    case FIELD_CALL_INDEX:
        frame->call_index = value;
        return true;
    case FIELD_START:
        frame->start_ticks = value;
        return true;
    case FIELD_CHILD_TICKS:
        frame->child_ticks = value;
        return true;
    case FIELD_FLAGS:
        frame->flags = (uint32_t)value;
        return value <= UINT32_MAX;
    case FIELDS:
        break;
    }
    return false;
}

sj_status sj_keyframe_decode(sj_slice bytes, size_t count, uint64_t first_ticks, uint32_t step,
                             sj_stack_frame *frames)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    if (count == 0) {
        return bytes.size == 0 ? SJ_OK : SJ_ECORRUPT;
    }
    for (size_t i = 0; i < count; i++) {
        frames[i].jumped_ticks = 0; /* set from SJ_COLUMN_JUMPED_FRAMES later */
    }
    const uint64_t unit = sj_read_varint(&reader);
    bool good = unit == 1 || unit == step;
    for (frame_field field = 0; field < FIELDS && good; field++) {
        delta_reader column = {.reader = &reader};
        for (size_t i = 0; i < count && good; i++) {
            uint64_t value = read_delta(&column);
            if (field == FIELD_START) {
                value = first_ticks + value * unit;
            }
            good = set_field(&frames[i], field, value) && !reader.bad;
        }
        good = good && column.repeats == 0;
    }
    return good && sj_reader_left(&reader) == 0 ? SJ_OK : SJ_ECORRUPT;
}
