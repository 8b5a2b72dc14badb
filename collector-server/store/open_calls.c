/* The calls that are still open when a stream ends. The recorder ends them in the stream's last
 * blocks, as open; without that they are the end state of the last block. */
#include "collector-server/store/store_internal.h"
#include "proto/base/array.h"
#include "proto/block/call_trust.h"
#include "proto/callgraph/block_check.h"

#include <stdlib.h>
#include <string.h>

typedef struct open_stack {
    sj_stack_frame *frames;
    size_t count;
    size_t capacity;
} open_stack;

typedef struct open_call {
    sj_stack_frame frame;
    uint32_t depth; /* calls around it */
} open_call;

typedef struct open_list {
    open_call *calls;
    size_t count;
    size_t capacity;
} open_list;

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

/* How the call that leaves at `event` ended; `*next` is the ending looked at next. */
static uint32_t ending_at(const sj_block *block, size_t event, size_t *next)
{
    if (*next < block->ending_count && block->endings[*next].event == event) {
        return block->endings[(*next)++].ending;
    }
    return SJ_ENDING_RETURNED;
}

/* Lists the innermost call, which nothing has ended. */
static sj_status list_innermost(const open_stack *stack, const sj_call_trust *trust,
                                open_list *list)
{
    const uint32_t depth = (uint32_t)stack->count - 1;
    SJ_TRY(sj_array_reserve(&list->calls, &list->capacity, list->count, 1, sizeof(*list->calls)));
    open_call *call = &list->calls[list->count++];
    *call = (open_call){.frame = stack->frames[depth], .depth = depth};
    call->frame.flags |= sj_call_trust_flags(trust, depth);
    return SJ_OK;
}

static sj_status enter(const sj_block *block, size_t event, uint64_t call_index,
                       sj_call_trust *trust, open_stack *stack)
{
    const uint32_t function = block->functions[sj_block_symbol(block, event) - 1];
    return push(stack, (sj_stack_frame){.call_index = call_index,
                                        .start_ticks = block->ticks[event],
                                        .function = function,
                                        .flags = sj_call_trust_enter(trust)});
}

/* Takes the innermost call off the stack; lists it if it ended as open. */
static sj_status leave(uint32_t ending, sj_call_trust *trust, open_stack *stack, open_list *list)
{
    if (stack->count == 0) {
        return SJ_OK;
    }
    if (ending == SJ_ENDING_OPEN) {
        SJ_TRY(list_innermost(stack, trust, list));
    }
    stack->count--;
    sj_call_trust_leave(trust, (uint32_t)stack->count);
    return SJ_OK;
}

/* Replays the block; gaps count in the numbers of the calls after them, and flag those open. */
static sj_status replay(const sj_block *block, open_stack *stack, open_list *list)
{
    sj_call_trust trust = sj_call_trust_of(&block->header);
    uint64_t call_index = block->header.first_call;
    size_t gap = 0, ending = 0;
    for (size_t i = 0; i <= block->header.event_count; ++i) {
        for (; gap < block->gap_count && block->gaps[gap].before_event <= i; ++gap) {
            call_index += block->gaps[gap].calls;
            sj_call_trust_gap(&trust, block->gaps[gap].reason, (uint32_t)stack->count);
        }
        if (i == block->header.event_count) {
            break;
        }
        SJ_TRY(sj_block_symbol(block, i) != SJ_EVENT_LEAVE
                   ? enter(block, i, call_index++, &trust, stack)
                   : leave(ending_at(block, i, &ending), &trust, stack, list));
    }
    if ((block->header.flags & SJ_BLOCK_LAST) == 0) {
        return SJ_OK;
    }
    for (; stack->count > 0; stack->count--) {
        SJ_TRY(list_innermost(stack, &trust, list));
    }
    return SJ_OK;
}

static sj_status add_row(sj_store *store, const sj_session_state *state, int64_t stream_id,
                         const open_call *call, sj_error *error)
{
    const sj_stack_frame *frame = &call->frame;
    int64_t function_id = 0;
    if (!sj_session_function_id(state, frame->function, &function_id)) {
        return sj_fail(error, SJ_ENOTFOUND, "function %u has no module", frame->function);
    }
    return sj_sql_run(&store->sql, SJ_SQL_OPEN_CALL_ADD, error, "iuiiii", stream_id,
                      frame->call_index, function_id, (int64_t)call->depth,
                      sj_ticks_at_ns(&state->clock, frame->start_ticks), (int64_t)frame->flags);
}

sj_status sj_store_note_open_calls(sj_store *store, const sj_session_state *state,
                                   int64_t stream_id, const sj_block *block, sj_error *error)
{
    open_stack stack = {0};
    open_list list = {0};
    const bool ends_open = block->ending_count != 0 &&
                           block->endings[block->ending_count - 1].ending == SJ_ENDING_OPEN;
    if (!ends_open && (block->header.flags & SJ_BLOCK_LAST) == 0) {
        return SJ_OK;
    }
    sj_status status = push_key_frame(store, stream_id, block, &stack);
    if (status == SJ_OK) {
        status = replay(block, &stack, &list);
    }
    for (size_t i = 0; status == SJ_OK && i < list.count; ++i) {
        status = add_row(store, state, stream_id, &list.calls[i], error);
    }
    free(stack.frames);
    free(list.calls);
    return status;
}
