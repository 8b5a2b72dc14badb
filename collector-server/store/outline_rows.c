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
    return sj_sql_run(&store->sql, SJ_SQL_OUTLINE_PUT, error, "iiub", block_id, stream_id,
                      encoded.floor_ticks, &encoded.calls);
}
