/* From the constraints of an SQL query to a walk over blocks; see calls_table.c. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_CALLS_PLAN_H
#define SJ_COLLECTOR_SERVER_QUERY_CALLS_PLAN_H

#include "collector-server/query/block_scan.h"

/* Columns of `calls`, in the order of their declaration. */
typedef enum sj_calls_column {
    SJ_CALLS_CALL_ID,
    SJ_CALLS_SESSION_ID,
    SJ_CALLS_STREAM_ID,
    SJ_CALLS_THREAD_ID,
    SJ_CALLS_FUNCTION_ID,
    SJ_CALLS_PARENT_ID,
    SJ_CALLS_DEPTH,
    SJ_CALLS_START_NS,
    SJ_CALLS_END_NS,
    SJ_CALLS_DURATION_NS,
    SJ_CALLS_SELF_NS,
    SJ_CALLS_ENDING,
    SJ_CALLS_FLAGS,
    SJ_CALLS_CALLER_FUNCTION_ID,
    SJ_CALLS_TAIL_CALLER_ID,
    SJ_CALLS_PHYSICAL_PARENT_ID,
    SJ_CALLS_PHYSICAL_DURATION_NS,
    SJ_CALLS_CPU_NS,
    SJ_CALLS_CPU_SELF_NS,
    SJ_CALLS_ALLOCATIONS,
    SJ_CALLS_ALLOCATED_BYTES,
    SJ_CALLS_FREES,
    SJ_CALLS_FREED_BYTES,
    SJ_CALLS_NET_BYTES,
    SJ_CALLS_ALLOCATED_SELF_BYTES,
    SJ_CALLS_COLUMN_COUNT
} sj_calls_column;

/* idxNum of a plan: the columns used (bit = column), and whether rows come grouped by function or
 * with the longest first. */
enum { SJ_CALLS_GROUPED = 1 << 28, SJ_CALLS_LONGEST = 1 << 29 };

/* sj_calls_plan answers xBestIndex: takes what the walk can decide, says how much is left. */
int sj_calls_plan(sj_query_state *state, sqlite3_index_info *info);

/* sj_calls_filter makes the filter of a plan (its idxStr and arguments). False: nothing can match
 * (a NULL or text argument compares with no number as asked). */
bool sj_calls_filter(const char *plan, int argc, sqlite3_value **argv, sj_scan_filter *filter);

#endif
