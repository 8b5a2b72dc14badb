#include "collector-server/query/calls_row.h"

/* Reads the caller of `row` into at->frame. The caller was open at the start of the block. Returns
 * false if there is none, or it cannot be read. */
static bool find_caller_frame(sj_calls_row *at, size_t row)
{
    const uint32_t depth = at->scan->rows.depths[row];
    if (depth == 0) {
        return false;
    }
    if (at->frame_depth != depth) {
        at->frame_depth = depth;
        at->frame_known = sj_block_scan_frame(at->scan, depth - 1, &at->frame) == SQLITE_OK;
    }
    return at->frame_known;
}

int64_t sj_calls_parent(sj_calls_row *at, size_t row)
{
    const uint32_t parent = at->scan->rows.parents[row];
    if (parent != SJ_ROW_NO_PARENT) {
        return sj_calls_id(at, at->scan->rows.indexes[parent]);
    }
    return find_caller_frame(at, row) ? sj_calls_id(at, at->frame.call_index) : SJ_CALLS_NO_VALUE;
}

int64_t sj_calls_caller(sj_calls_row *at, size_t row)
{
    const uint32_t parent = at->scan->rows.parents[row];
    int64_t function = 0;
    if (parent != SJ_ROW_NO_PARENT) {
        function = at->scan->function_ids[at->scan->rows.symbols[parent]];
    } else if (find_caller_frame(at, row)) {
        function = sj_scan_function_id(&at->scan->session, at->frame.function);
    }
    return function != 0 ? function : SJ_CALLS_NO_VALUE;
}

/* Returns the call that SJ_CALL_BELOW_FRAME + `depth` refers to (block_rows.h). */
static int64_t find_below_frame(sj_calls_row *at, uint32_t depth)
{
    sj_stack_frame frame;
    while (depth > 0 && sj_block_scan_frame(at->scan, --depth, &frame) == SQLITE_OK) {
        if (frame.jumped_ticks == 0) {
            return sj_calls_id(at, frame.call_index);
        }
    }
    return SJ_CALLS_NO_VALUE;
}

static int64_t resolve_call(sj_calls_row *at, sj_row_call call)
{
    sj_stack_frame frame;
    const uint32_t depth = call & SJ_CALL_DEPTH_MASK;
    if (call == SJ_NO_CALL) {
        return SJ_CALLS_NO_VALUE;
    }
    if ((call & SJ_CALL_OF_FRAME) != 0) {
        return sj_block_scan_frame(at->scan, depth, &frame) == SQLITE_OK
                   ? sj_calls_id(at, frame.call_index)
                   : SJ_CALLS_NO_VALUE;
    }
    return (call & SJ_CALL_BELOW_FRAME) != 0 ? find_below_frame(at, depth)
                                             : sj_calls_id(at, at->scan->rows.indexes[call]);
}

static int64_t find_tail_caller(sj_calls_row *at, size_t row)
{
    const sj_block_rows *rows = &at->scan->rows;
    return rows->has_tail_calls ? resolve_call(at, rows->tail_callers[row]) : SJ_CALLS_NO_VALUE;
}

static int64_t find_physical_parent(sj_calls_row *at, size_t row)
{
    const sj_block_rows *rows = &at->scan->rows;
    return rows->has_tail_calls ? resolve_call(at, rows->frame_parents[row])
                                : sj_calls_parent(at, row);
}

/* Returns the time from the call's entry to the end of its stack frame. */
static int64_t physical_duration_ns(const sj_calls_row *at, size_t row)
{
    const sj_block_rows *rows = &at->scan->rows;
    if (rows->lefts[row] != 0) {
        return sj_scan_ns(&at->scan->session, rows->lefts[row]) - sj_calls_start_ns(at, row);
    }
    return sj_row_ended(rows, row) ? sj_calls_end_ns(at, row) - sj_calls_start_ns(at, row)
                                   : SJ_CALLS_NO_VALUE;
}

/* For a call without callees, returns its duration, so that rounding cannot make duration and self
 * time differ. */
static int64_t self_ns(const sj_calls_row *at, size_t row)
{
    const sj_block_rows *rows = &at->scan->rows;
    return rows->selves[row] == rows->ends[row] - rows->starts[row]
               ? sj_calls_end_ns(at, row) - sj_calls_start_ns(at, row)
               : sj_ticks_to_ns(&at->scan->session.scale, rows->selves[row]);
}

int64_t sj_calls_value(sj_calls_row *at, size_t row, int column)
{
    const sj_block_scan *scan = at->scan;
    const sj_block_rows *rows = &scan->rows;
    switch ((sj_calls_column)column) { /* without default: the compiler reports a missing column */
    case SJ_CALLS_CALL_ID:
        return sj_calls_id(at, rows->indexes[row]);
    case SJ_CALLS_SESSION_ID:
        return scan->session.session_id;
    case SJ_CALLS_STREAM_ID:
        return scan->stream_id;
    case SJ_CALLS_THREAD_ID:
        return scan->thread_id;
    case SJ_CALLS_FUNCTION_ID: {
        const int64_t function = scan->function_ids[rows->symbols[row]];
        return function != 0 ? function : SJ_CALLS_NO_VALUE;
    }
    case SJ_CALLS_PARENT_ID:
        return sj_calls_parent(at, row);
    case SJ_CALLS_DEPTH:
        return rows->depths[row];
    case SJ_CALLS_START_NS:
        return sj_calls_start_ns(at, row);
    case SJ_CALLS_END_NS:
        return sj_row_ended(rows, row) ? sj_calls_end_ns(at, row) : SJ_CALLS_NO_VALUE;
    case SJ_CALLS_DURATION_NS:
        return sj_row_ended(rows, row) ? sj_calls_end_ns(at, row) - sj_calls_start_ns(at, row)
                                       : SJ_CALLS_NO_VALUE;
    case SJ_CALLS_SELF_NS:
        return sj_row_ended(rows, row) ? self_ns(at, row) : SJ_CALLS_NO_VALUE;
    case SJ_CALLS_ENDING:
        return rows->endings[row];
    case SJ_CALLS_FLAGS:
        return rows->flags[row];
    case SJ_CALLS_CALLER_FUNCTION_ID:
        return sj_calls_caller(at, row);
    case SJ_CALLS_TAIL_CALLER_ID:
        return find_tail_caller(at, row);
    case SJ_CALLS_PHYSICAL_PARENT_ID:
        return find_physical_parent(at, row);
    case SJ_CALLS_PHYSICAL_DURATION_NS:
        return physical_duration_ns(at, row);
    case SJ_CALLS_CPU_NS:
    case SJ_CALLS_CPU_SELF_NS:
    case SJ_CALLS_ALLOCATIONS:
    case SJ_CALLS_ALLOCATED_BYTES:
    case SJ_CALLS_FREES:
    case SJ_CALLS_FREED_BYTES:
    case SJ_CALLS_NET_BYTES:
    case SJ_CALLS_ALLOCATED_SELF_BYTES:
        return sj_cost_lookup_find(&at->costs, scan, sj_calls_id(at, rows->indexes[row]),
                                   column - SJ_CALLS_CPU_NS);
    case SJ_CALLS_COLUMN_COUNT:
        break;
    }
    return SJ_CALLS_NO_VALUE;
}

static void give_ending(sqlite3_context *context, int64_t ending)
{
    static const char *const names[] = {"returned", "unwound", "open",
                                        "truncated", [SJ_NOT_ENDED] = "open"};
    if (ending >= 0 && ending < (int64_t)(sizeof(names) / sizeof(names[0]))) {
        sqlite3_result_text(context, names[ending], -1, SQLITE_STATIC);
    }
}

void sj_calls_give(sqlite3_context *context, int column, int64_t value)
{
    if (column == SJ_CALLS_ENDING) {
        give_ending(context, value);
    } else if (value != SJ_CALLS_NO_VALUE) {
        sqlite3_result_int64(context, value);
    }
}
