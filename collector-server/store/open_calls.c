/* The calls that are still open when a stream ends: the end state of its last block. */
#include "collector-server/store/store_internal.h"
#include "proto/base/array.h"
#include "proto/block/call_trust.h"

#include <stdlib.h>
#include <string.h>

typedef struct open_stack {
    sj_stack_frame *frames;
    size_t count;
    size_t capacity;
} open_stack;

static sj_status push(open_stack *stack, sj_stack_frame frame)
{
    SJ_TRY(sj_array_reserve(&stack->frames, &stack->capacity, stack->count, 1,
                            sizeof(*stack->frames)));
    stack->frames[stack->count++] = frame;
    return SJ_OK;
}

static sj_status push_key_frame(sj_store *store, int64_t stream_id, const sj_block *block,
                                open_stack *stack)
{
    const sj_block_header *header = &block->header;
    if (header->stack_frames != 0) {
        stack->frames = calloc(header->stack_frames, sizeof(*stack->frames));
        if (stack->frames == NULL) {
            return SJ_ENOMEM;
        }
        stack->capacity = header->stack_frames;
        sj_stack_context context = {.store = store, .stream_id = stream_id};
        SJ_TRY(sj_store_stack_frames(&context, header->stream, header->stack_reference,
                                     header->stack_frames, stack->frames));
        stack->count = header->stack_frames;
    }
    for (size_t i = 0; i < block->frame_count; ++i) {
        SJ_TRY(push(stack, block->frames[i]));
    }
    return SJ_OK;
}

/* Replays the block; gaps count in the numbers of the calls after them, and flag those open. */
static sj_status replay(const sj_block *block, open_stack *stack)
{
    sj_call_trust trust = sj_call_trust_of(&block->header);
    uint64_t call_index = block->header.first_call;
    size_t gap = 0;
    for (size_t i = 0; i <= block->header.event_count; ++i) {
        for (; gap < block->gap_count && block->gaps[gap].before_event <= i; ++gap) {
            call_index += block->gaps[gap].calls;
            sj_call_trust_gap(&trust, block->gaps[gap].reason, (uint32_t)stack->count);
        }
        if (i == block->header.event_count) {
            break;
        }
        const uint32_t symbol =
            block->symbols16 != NULL ? block->symbols16[i] : block->symbols32[i];
        if (symbol != SJ_EVENT_LEAVE) {
            const uint32_t function = block->functions[symbol - 1];
            SJ_TRY(push(stack, (sj_stack_frame){.call_index = call_index++,
                                                .start_ticks = block->ticks[i],
                                                .function = function,
                                                .flags = sj_call_trust_enter(&trust)}));
        } else if (stack->count > 0) {
            stack->count--;
            sj_call_trust_leave(&trust, (uint32_t)stack->count);
        }
    }
    for (size_t i = 0; i < stack->count; ++i) {
        stack->frames[i].flags |= sj_call_trust_flags(&trust, (uint32_t)i);
    }
    return SJ_OK;
}

sj_status sj_store_note_open_calls(sj_store *store, const sj_session_state *state,
                                   int64_t stream_id, const sj_block *block, sj_error *error)
{
    open_stack stack = {0};
    sj_status status = push_key_frame(store, stream_id, block, &stack);
    if (status == SJ_OK) {
        status = replay(block, &stack);
    }
    for (size_t i = 0; status == SJ_OK && i < stack.count; ++i) {
        const sj_stack_frame *frame = &stack.frames[i];
        int64_t function_id = 0;
        if (!sj_session_function_id(state, frame->function, &function_id)) {
            status = sj_fail(error, SJ_ENOTFOUND, "function %u has no module", frame->function);
            break;
        }
        status =
            sj_sql_run(&store->sql, SJ_SQL_OPEN_CALL_ADD, error, "iuiiii", stream_id,
                       frame->call_index, function_id, (int64_t)i,
                       sj_ticks_at_ns(&state->clock, frame->start_ticks), (int64_t)frame->flags);
    }
    free(stack.frames);
    return status;
}
