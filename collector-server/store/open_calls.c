/* Stores the calls that are still open when a stream ends. The recorder ends them in the stream's
 * last blocks, as open, or lists them in a profile. Otherwise they are the calls open at the end of
 * the last block. */
#include "collector-server/store/store_internal.h"
#include "proto/callgraph/profile.h"
#include "proto/callgraph/stack_walk.h"

#include <stdlib.h>

typedef struct open_rows {
    sj_store *store;
    const sj_session_state *state;
    int64_t stream_id;
    sj_error *error;
} open_rows;

static sj_status add_row(void *context, const sj_stack_frame *frame, uint32_t depth)
{
    const open_rows *rows = context;
    int64_t function_id = 0;
    if (!sj_session_function_id(rows->state, frame->function, &function_id)) {
        return sj_fail(rows->error, SJ_ENOTFOUND, "function %u has no module", frame->function);
    }
    return SJ_RUN(&rows->store->sql, open_call_add, rows->error, .stream_id = rows->stream_id,
                  .call_index = frame->call_index, .function_id = function_id, .depth = depth,
                  .start_ns = sj_ticks_at_ns(&rows->state->clock, frame->start_ticks),
                  .flags = frame->flags);
}

/* Adds rows of the calls that are open after the last block of a stream. */
static sj_status add_left(open_rows *rows, const sj_stack_walk *walk)
{
    for (size_t i = walk->count; i > 0; i--) {
        sj_stack_frame frame = walk->frames[i - 1];
        frame.flags = sj_stack_walk_flags(walk, (uint32_t)i - 1);
        SJ_TRY(add_row(rows, &frame, (uint32_t)i - 1));
    }
    return SJ_OK;
}

sj_status sj_store_add_open_calls(sj_store *store, sj_session_state *state,
                                  const sj_profile *profile, sj_error *error)
{
    const size_t known = state->stream_count;
    for (uint32_t i = 0; i < profile->open_count; i++) {
        const sj_profile_open_call *call = &profile->open_calls[i];
        const sj_stack_frame frame = {.call_index = call->call_index,
                                      .start_ticks = call->start_ticks,
                                      .function = call->function,
                                      .flags = call->flags};
        sj_stream_state *stream = NULL;
        SJ_TRY(sj_session_add_stream(&store->sql, state, call->stream, &stream, error));
        if (state->stream_count - known > SJ_MOST_NEW_STREAMS) {
            return sj_fail(error, SJ_ELIMIT, "a profile has open calls of more than %d new streams",
                           SJ_MOST_NEW_STREAMS);
        }
        open_rows rows = {
            .store = store, .state = state, .stream_id = stream->stream_id, .error = error};
        SJ_TRY(add_row(&rows, &frame, call->depth));
    }
    return SJ_OK;
}

sj_status sj_store_walk_block(sj_store *store, int64_t stream_id, const sj_block *block,
                              sj_stack_walk *walk)
{
    const sj_block_header *header = &block->header;
    sj_stack_context context = {.store = store, .stream_id = stream_id};
    sj_stack_frame *deep = NULL;
    sj_status status = SJ_OK;
    if (header->stack_frames != 0) {
        deep = calloc(header->stack_frames, sizeof(*deep));
        status = deep == NULL
                     ? SJ_ENOMEM
                     : sj_store_stack_frames(&context, header->stream, header->stack_reference,
                                             header->stack_frames, deep);
    }
    if (status == SJ_OK) {
        status = sj_stack_walk_begin(walk, block, deep);
    }
    free(deep);
    return status == SJ_OK ? sj_stack_walk_run(walk, block) : status;
}

sj_status sj_store_note_open_calls(sj_store *store, const sj_session_state *state,
                                   int64_t stream_id, const sj_block *block, sj_error *error)
{
    open_rows rows = {.store = store, .state = state, .stream_id = stream_id, .error = error};
    sj_stack_walk walk = {.open_call = add_row, .context = &rows};
    const bool is_last = (block->header.flags & SJ_BLOCK_LAST) != 0;
    const bool ends_open = block->ending_count != 0 &&
                           block->endings[block->ending_count - 1].ending == SJ_ENDING_OPEN;
    if (!ends_open && !is_last) {
        return SJ_OK;
    }
    sj_status status = sj_store_walk_block(store, stream_id, block, &walk);
    if (status == SJ_OK && is_last) {
        status = add_left(&rows, &walk);
    }
    sj_stack_walk_deinit(&walk);
    return status;
}
