#include "collector-server/query/scan_outline.h"

#include "collector-server/query/scan_contents.h"
#include "collector-server/store/block_outline.h"

#include <stdlib.h>

typedef struct outline_rows {
    sj_outline_call calls[SJ_OUTLINE_CALLS + SJ_OUTLINE_OPEN];
    size_t count;
    uint64_t floor_ticks;
} outline_rows;

static sj_status read_outline(const sj_block_scan *scan, outline_rows *outline)
{
    sqlite3_stmt *row = scan->outlines;
    const sj_slice calls = {sqlite3_column_blob(row, 1), (size_t)sqlite3_column_bytes(row, 1)};
    outline->floor_ticks = (uint64_t)sqlite3_column_int64(row, 0);
    return sj_block_outline_read_calls(calls, (uint64_t)sqlite3_column_int64(scan->blocks, 1),
                                       (uint64_t)sqlite3_column_int64(scan->blocks, 3),
                                       outline->floor_ticks, outline->calls, &outline->count);
}

/* Returns the row of a call's caller. If the outline lacks the caller, the caller was open when the
 * block began: a caller lasts at least as long as its callee. `last` is the previous row. */
static uint32_t find_parent(const sj_block_rows *rows, uint32_t *last, uint32_t row)
{
    const uint32_t depth = rows->depths[row];
    uint32_t caller = *last;
    while (caller != SJ_ROW_NO_PARENT && rows->depths[caller] >= depth) {
        caller = rows->parents[caller];
    }
    *last = row;
    return caller != SJ_ROW_NO_PARENT && rows->depths[caller] + 1 == depth ? caller
                                                                           : SJ_ROW_NO_PARENT;
}

static int fill_rows(sj_block_scan *scan, const outline_rows *outline)
{
    sj_block_rows *rows = &scan->rows;
    if (sj_block_rows_reserve(rows, outline->count) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    rows->count = outline->count;
    rows->open_count = 0;
    rows->has_tail_calls = false;
    uint32_t last = SJ_ROW_NO_PARENT;
    for (uint32_t i = 0; i < outline->count; ++i) {
        const sj_outline_call *call = &outline->calls[i];
        scan->outline_functions[i] = call->function;
        rows->symbols[i] = i;
        rows->depths[i] = call->depth;
        rows->parents[i] = find_parent(rows, &last, i);
        rows->indexes[i] = call->call_index;
        rows->endings[i] = (uint8_t)call->ending;
        rows->flags[i] = (uint8_t)call->flags;
        rows->starts[i] = call->start_ticks;
        rows->ends[i] = call->start_ticks + call->duration_ticks;
        rows->selves[i] = call->self_ticks;
        rows->lefts[i] = 0;
        if (call->ending == SJ_NOT_ENDED) {
            rows->open[rows->open_count++] = i;
        }
    }
    scan->block = (sj_block){.functions = scan->outline_functions,
                             .function_count = outline->count,
                             .header.call_count = (uint32_t)outline->count};
    scan->outlined = true;
    scan->frames_read = false;
    return SQLITE_ROW;
}

int sj_scan_outline_use(sj_block_scan *scan)
{
    outline_rows outline;
    if (scan->outline_functions == NULL) {
        scan->outline_functions =
            malloc((SJ_OUTLINE_CALLS + SJ_OUTLINE_OPEN) * sizeof(*scan->outline_functions));
        if (scan->outline_functions == NULL) {
            return SQLITE_NOMEM;
        }
    }
    sqlite3_bind_int64(scan->outlines, 1, scan->block_id);
    int result = sqlite3_step(scan->outlines);
    if (result == SQLITE_ROW) {
        result = read_outline(scan, &outline) == SJ_OK &&
                         scan->session.min_duration > outline.floor_ticks
                     ? SQLITE_ROW
                     : SQLITE_NOTFOUND;
    } else if (result == SQLITE_DONE) {
        result = SQLITE_NOTFOUND;
    }
    sqlite3_reset(scan->outlines);
    if (result != SQLITE_ROW) {
        return result;
    }
    return outline.count != 0 ? fill_rows(scan, &outline) : SQLITE_DONE;
}

int sj_scan_outline_load_frames(sj_block_scan *scan)
{
    sj_block block = {0};
    sj_slice bytes;
    sj_error why = {0};
    if (sj_scan_contents_bytes(scan, &bytes, &why) != SJ_OK) {
        sj_query_warn(scan->state, scan->block_id,
                      sqlite3_mprintf("block %lld cannot be read (%s): callers of its long calls"
                                      " are missing here",
                                      scan->block_id, why.text));
        return SQLITE_NOTFOUND;
    }
    if (sj_block_decode(scan->decoder, bytes, 0, &block) != SJ_OK) {
        return SQLITE_NOTFOUND;
    }
    scan->block.header.stack_frames = block.header.stack_frames;
    scan->block.header.stack_reference = block.header.stack_reference;
    scan->block.frames = block.frames;
    scan->block.frame_count = block.frame_count;
    scan->frames_read = true;
    return SQLITE_OK;
}
