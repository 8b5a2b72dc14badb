/* Open calls that lie in STACK blocks instead of key-frames, read back from the database. */
#include "collector-server/store/store_internal.h"

#include <string.h>

sj_status sj_store_stack_frames(void *context, uint32_t stream, uint32_t stack_reference,
                                uint32_t count, sj_stack_frame *frames)
{
    const sj_stack_context *stack = context;
    sj_store *store = stack->store;
    (void)stream;
    uint32_t wanted = count; /* frames [0, wanted) are still missing */
    while (wanted > 0) {
        sj_statements *sql = &store->sql;
        sj_block block;
        if (stack_reference == 0) {
            return SJ_ENOTFOUND;
        }
        SJ_TRY(sj_sql_bind(sql, SJ_SQL_BLOCK_STACK, NULL, "ii", stack->stream_id,
                           (int64_t)stack_reference));
        SJ_TRY(sj_sql_step(sql, SJ_SQL_BLOCK_STACK, NULL));
        sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_BLOCK_STACK);
        sj_slice bytes;
        sj_status status = sj_block_files_get_columns(store->stack_files, row, 0, 1, &bytes, NULL);
        if (status == SJ_OK) {
            status = sj_block_decode(store->stack_decoder, bytes, 0, &block);
        }
        sj_sql_reset(sql, SJ_SQL_BLOCK_STACK);
        SJ_TRY(status);
        const uint32_t first = block.header.stack_frames;
        if (first >= wanted || block.frame_count < wanted - first ||
            block.header.stack_reference >= stack_reference) {
            return SJ_ECORRUPT;
        }
        memcpy(frames + first, block.frames, (wanted - first) * sizeof(*frames));
        wanted = first;
        stack_reference = block.header.stack_reference;
    }
    return stack->state != NULL ? sj_store_unite_frames(stack->state, frames, count) : SJ_OK;
}
