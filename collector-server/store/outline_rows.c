/* Writes the table block_outlines. */
#include "collector-server/store/block_outline.h"
#include "collector-server/store/store_internal.h"

sj_status sj_store_put_outline(sj_store *store, int64_t block_id, int64_t stream_id,
                               const sj_block_header *header, size_t block_bytes,
                               const sj_block_summary *summary, sj_error *error)
{
    sj_block_outline encoded;
    const size_t budget = sj_block_outline_budget(header, block_bytes);
    if (budget == 0 ||
        sj_block_outline_encode(summary->outline, header, budget, &encoded) != SJ_OK) {
        return SJ_OK;
    }
    return SJ_RUN(&store->sql, outline_put, error, .block_id = block_id, .stream_id = stream_id,
                  .floor_ticks = encoded.floor_ticks, .calls = encoded.calls);
}
