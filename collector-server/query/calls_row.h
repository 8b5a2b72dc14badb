/* The columns of `calls` for a row of the block that a walk is in. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_CALLS_ROW_H
#define SJ_COLLECTOR_SERVER_QUERY_CALLS_ROW_H

#include "collector-server/query/block_scan.h"
#include "collector-server/query/calls_plan.h"
#include "collector-server/query/cost_lookup.h"

#define SJ_CALLS_NO_VALUE INT64_MIN /* NULL */

typedef struct sj_calls_row {
    sj_block_scan *scan; /* borrowed */
    /* the call open at the start of the block that was asked for last */
    uint32_t frame_depth; /* UINT32_MAX: none yet, as in each new block */
    sj_stack_frame frame;
    bool frame_known;
    sj_cost_lookup costs;
} sj_calls_row;

/* sj_calls_id returns the id of a call of the stream by its number in it. */
static inline int64_t sj_calls_id(const sj_calls_row *at, uint64_t index)
{
    return (int64_t)sj_call_id_of((uint64_t)at->scan->stream_id, index);
}

/* sj_calls_start_ns and sj_calls_end_ns return times since the session's start, of rows with times.
 */
static inline int64_t sj_calls_start_ns(const sj_calls_row *at, size_t row)
{
    return sj_scan_ns(&at->scan->session, at->scan->rows.starts[row]);
}

static inline int64_t sj_calls_end_ns(const sj_calls_row *at, size_t row)
{
    return sj_scan_ns(&at->scan->session, at->scan->rows.ends[row]);
}

/* sj_calls_parent and sj_calls_caller return the id and the function of what called the row;
 * SJ_CALLS_NO_VALUE: nothing, or it is not known. */
int64_t sj_calls_parent(sj_calls_row *at, size_t row);
int64_t sj_calls_caller(sj_calls_row *at, size_t row);

/* sj_calls_value returns the value of a column (sj_calls_column), an ending by its number. */
int64_t sj_calls_value(sj_calls_row *at, size_t row, int column);

#endif
