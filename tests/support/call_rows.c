#include "tests/support/call_rows.h"

#include "proto/block/call_trust.h"
#include "proto/callgraph/block_check.h"

#include <stdlib.h>

#define NO_ROW UINT32_MAX

/* An open call: its stack frame, and the number of the row that its end completes. */
struct sj_call_reader {
    sj_call_rows rows;
    size_t row_capacity;
    sj_stack_frame *stack;
    uint32_t *stack_row;
    size_t stack_capacity;
};

typedef struct row_walk {
    sj_call_reader *reader;
    const sj_block *block;
    sj_call_trust trust;
    uint32_t depth;
    uint64_t next_index;
} row_walk;

sj_status sj_call_reader_new(sj_call_reader **reader)
{
    *reader = calloc(1, sizeof(**reader));
    return *reader != NULL ? SJ_OK : SJ_ENOMEM;
}

void sj_call_reader_free(sj_call_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    free(reader->rows.index);
    free(reader->rows.parent);
    free(reader->rows.start_ticks);
    free(reader->rows.end_ticks);
    free(reader->rows.child_ticks);
    free(reader->rows.function);
    free(reader->rows.depth);
    free(reader->rows.flags);
    free(reader->rows.ending);
    free(reader->stack);
    free(reader->stack_row);
    free(reader);
}

static bool resize(void *array, size_t count, size_t size)
{
    void *moved = realloc(*(void **)array, count * size);
    if (moved == NULL) {
        return false;
    }
    *(void **)array = moved;
    return true;
}

static sj_status reserve_rows(sj_call_reader *reader, size_t count)
{
    if (count <= reader->row_capacity) {
        return SJ_OK;
    }
    sj_call_rows *rows = &reader->rows;
    const bool made = resize(&rows->index, count, sizeof(*rows->index)) &&
                      resize(&rows->parent, count, sizeof(*rows->parent)) &&
                      resize(&rows->start_ticks, count, sizeof(*rows->start_ticks)) &&
                      resize(&rows->end_ticks, count, sizeof(*rows->end_ticks)) &&
                      resize(&rows->child_ticks, count, sizeof(*rows->child_ticks)) &&
                      resize(&rows->function, count, sizeof(*rows->function)) &&
                      resize(&rows->depth, count, sizeof(*rows->depth)) &&
                      resize(&rows->flags, count, sizeof(*rows->flags)) &&
                      resize(&rows->ending, count, sizeof(*rows->ending));
    if (!made) {
        return SJ_ENOMEM;
    }
    reader->row_capacity = count;
    return SJ_OK;
}

static sj_status reserve_stack(sj_call_reader *reader, size_t count)
{
    if (count <= reader->stack_capacity) {
        return SJ_OK;
    }
    if (!resize(&reader->stack, count, sizeof(*reader->stack)) ||
        !resize(&reader->stack_row, count, sizeof(*reader->stack_row))) {
        return SJ_ENOMEM;
    }
    reader->stack_capacity = count;
    return SJ_OK;
}

static void push_row(row_walk *walk, const sj_stack_frame *frame)
{
    sj_call_rows *rows = &walk->reader->rows;
    const size_t row = rows->count++;
    rows->index[row] = frame->call_index;
    rows->parent[row] =
        walk->depth > 0 ? walk->reader->stack[walk->depth - 1].call_index : SJ_CALL_NO_PARENT;
    rows->start_ticks[row] = frame->start_ticks;
    rows->end_ticks[row] = SJ_CALL_NOT_ENDED;
    rows->child_ticks[row] = frame->child_ticks;
    rows->function[row] = frame->function;
    rows->depth[row] = walk->depth;
    rows->flags[row] = (uint8_t)frame->flags;
    rows->ending[row] = SJ_NOT_ENDED;
    walk->reader->stack[walk->depth] = *frame;
    walk->reader->stack_row[walk->depth++] = (uint32_t)row;
}

static void enter_call(row_walk *walk, uint32_t function, uint64_t ticks)
{
    const sj_stack_frame frame = {.call_index = walk->next_index++,
                                  .start_ticks = ticks,
                                  .function = function,
                                  .flags = sj_call_trust_enter(&walk->trust)};
    push_row(walk, &frame);
}

static void leave_call(row_walk *walk, uint64_t ticks, uint32_t ending)
{
    sj_call_rows *rows = &walk->reader->rows;
    const uint32_t index = --walk->depth;
    const sj_stack_frame *frame = &walk->reader->stack[index];
    const uint32_t row = walk->reader->stack_row[index];
    if (row != NO_ROW) {
        rows->end_ticks[row] = ticks;
        rows->child_ticks[row] = frame->child_ticks;
        rows->flags[row] = (uint8_t)(frame->flags | sj_call_trust_flags(&walk->trust, index));
        rows->ending[row] = (uint8_t)ending;
    }
    if (index > 0) {
        walk->reader->stack[index - 1].child_ticks += ticks - frame->start_ticks;
    }
    sj_call_trust_leave(&walk->trust, index);
}

static void walk_events(row_walk *walk)
{
    const sj_block *block = walk->block;
    size_t gap = 0;
    size_t ending = 0;
    for (size_t event = 0; event <= block->header.event_count; event++) {
        while (gap < block->gap_count && block->gaps[gap].before_event == event) {
            sj_call_trust_gap(&walk->trust, block->gaps[gap].reason, walk->depth);
            walk->next_index += block->gaps[gap].calls;
            gap++;
        }
        if (event == block->header.event_count) {
            break;
        }
        const uint32_t symbol = sj_block_symbol(block, event);
        if (symbol != 0) {
            enter_call(walk, block->functions[symbol - 1], block->ticks[event]);
        } else if (ending < block->ending_count && block->endings[ending].event == event) {
            leave_call(walk, block->ticks[event], block->endings[ending++].ending);
        } else {
            leave_call(walk, block->ticks[event], SJ_ENDING_RETURNED);
        }
    }
}

/* Stores what is known so far of the calls that are still open: in their rows, and as frames. */
static void finish_open(row_walk *walk)
{
    sj_call_reader *reader = walk->reader;
    for (uint32_t i = 0; i < walk->depth; i++) {
        reader->stack[i].flags |= sj_call_trust_flags(&walk->trust, i);
        const uint32_t row = reader->stack_row[i];
        if (row != NO_ROW) {
            reader->rows.flags[row] = (uint8_t)reader->stack[i].flags;
            reader->rows.child_ticks[row] = reader->stack[i].child_ticks;
        }
    }
    reader->rows.open = reader->stack;
    reader->rows.open_count = walk->depth;
}

static sj_status load_frames(sj_call_reader *reader, const sj_block *block, sj_stack_lookup lookup,
                             void *lookup_context)
{
    const uint32_t prefix = block->header.stack_frames;
    if (prefix > 0) {
        if (lookup == NULL) {
            return SJ_ENOTFOUND;
        }
        SJ_TRY(lookup(lookup_context, block->header.stream, block->header.stack_reference, prefix,
                      reader->stack));
    }
    if (block->frame_count > 0) {
        memcpy(reader->stack + prefix, block->frames, block->frame_count * sizeof(sj_stack_frame));
    }
    return sj_block_check_frames(reader->stack, block->header.open_depth,
                                 block->header.first_ticks);
}

sj_status sj_call_reader_read(sj_call_reader *reader, const sj_block *block, sj_stack_lookup lookup,
                              void *lookup_context, const sj_call_rows **rows)
{
    sj_block_extent extent;
    SJ_TRY(sj_block_check(block, &extent));
    const uint32_t opened = block->header.open_depth;
    const bool gives_frames = block->header.first_event == 0;
    SJ_TRY(reserve_rows(reader, (size_t)extent.entered + (gives_frames ? opened : 0)));
    SJ_TRY(reserve_stack(reader, (size_t)extent.max_depth + 1));
    SJ_TRY(load_frames(reader, block, lookup, lookup_context));
    row_walk walk = {.reader = reader,
                     .block = block,
                     .trust = sj_call_trust_of(&block->header),
                     .next_index = block->header.first_call};
    reader->rows.count = 0;
    for (uint32_t i = 0; i < opened; i++) {
        if (gives_frames && (reader->stack[i].flags & SJ_CALL_BEFORE_RECORDING) != 0) {
            const sj_stack_frame frame = reader->stack[i];
            push_row(&walk, &frame);
        } else {
            reader->stack_row[walk.depth++] = NO_ROW;
        }
    }
    walk_events(&walk);
    finish_open(&walk);
    *rows = &reader->rows;
    return SJ_OK;
}
