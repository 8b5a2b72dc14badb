/* Computes the columns of `calls` for a row of the current block. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_CALLS_ROW_H
#define SJ_COLLECTOR_SERVER_QUERY_CALLS_ROW_H

#include "collector-server/query/block_scan.h"
#include "collector-server/query/calls_plan.h"
#include "collector-server/query/cost_lookup.h"

#define SJ_CALLS_NO_VALUE INT64_MIN /* NULL */

typedef struct sj_calls_row {
    sj_block_scan *scan; /* borrowed */
    /* The caller that was read last, of the callers that were open at the start of the block: */
    uint32_t frame_depth; /* its depth + 1; UINT32_MAX: none was read; reset it for a new block */
    sj_stack_frame frame;
    bool frame_known; /* `frame` could be read */
    sj_cost_lookup costs;
} sj_calls_row;

/* Returns the id of a call by its number in the stream. */
static inline int64_t sj_calls_id(const sj_calls_row *at, uint64_t index)
{
    return (int64_t)sj_call_id_of((uint64_t)at->scan->stream_id, index);
}

/* sj_calls_start_ns returns the time of a row's entry, and sj_calls_end_ns the time of its end,
 * since the session's start. The rows must have times. */
static inline int64_t sj_calls_start_ns(const sj_calls_row *at, size_t row)
{
    return sj_scan_ns(&at->scan->session, at->scan->rows.starts[row]);
}

static inline int64_t sj_calls_end_ns(const sj_calls_row *at, size_t row)
{
    return sj_scan_ns(&at->scan->session, at->scan->rows.ends[row]);
}

/* sj_calls_parent returns the call id of a row's caller, and sj_calls_caller its function_id. Both
 * return SJ_CALLS_NO_VALUE if there is no caller or it is unknown. */
int64_t sj_calls_parent(sj_calls_row *at, size_t row);
int64_t sj_calls_caller(sj_calls_row *at, size_t row);

/* Returns the value of a column (sj_calls_column). An ending is an sj_ending. */
int64_t sj_calls_value(sj_calls_row *at, size_t row, int column);

/* Makes a value of sj_calls_value the SQL result of a column. An ending becomes its name, and
 * SJ_CALLS_NO_VALUE becomes NULL. */
void sj_calls_give(sqlite3_context *context, int column, int64_t value);

#endif
