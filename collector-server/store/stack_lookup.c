/* Reads from the database the open calls that lie in DEEP_FRAMES blocks instead of key-frames. */
#include "collector-server/store/stack_lookup.h"

#include "collector-server/store/store_internal.h"

#include <string.h>

sj_status sj_stack_collect(sj_stack_block_read *read, void *context, uint32_t reference,
                           uint32_t count, sj_stack_frame *frames)
{
    uint32_t wanted = count; /* frames [0, wanted) are still missing */
    while (wanted > 0) {
        sj_block block;
        if (reference == 0) {
            return SJ_ENOTFOUND;
        }
        SJ_TRY(read(context, reference, &block));
        const uint32_t first = block.header.stack_frames;
        if (first >= wanted || block.frame_count < wanted - first ||
            block.header.stack_reference >= reference) {
            return SJ_ECORRUPT;
        }
        memcpy(frames + first, block.frames, (wanted - first) * sizeof(*frames));
        wanted = first;
        reference = block.header.stack_reference;
    }
    return SJ_OK;
}

static sj_status read_stored(void *context, uint32_t reference, sj_block *block)
{
    const sj_stack_context *stack = context;
    sj_store *store = stack->store;
    sj_statements *sql = &store->sql;
    sj_slice bytes;
    SJ_TRY(
        SJ_START(sql, block_stack, NULL, .stream_id = stack->stream_id, .first_event = reference));
    SJ_TRY(sj_sql_step(sql, SJ_SQL_BLOCK_STACK, NULL));
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_BLOCK_STACK);
    sj_status status = sj_block_files_get_columns(store->stack_files, row, 0, 1, &bytes, NULL);
    if (status == SJ_OK) {
        status = sj_block_decode(store->stack_decoder, bytes, 0, block);
    }
    sj_sql_reset(sql, SJ_SQL_BLOCK_STACK);
    return status;
}

sj_status sj_store_stack_frames(void *context, uint32_t stream, uint32_t stack_reference,
                                uint32_t count, sj_stack_frame *frames)
{
    const sj_stack_context *stack = context;
    (void)stream;
    SJ_TRY(sj_stack_collect(read_stored, context, stack_reference, count, frames));
    return stack->state != NULL ? sj_store_unite_frames(stack->state, frames, count) : SJ_OK;
}
