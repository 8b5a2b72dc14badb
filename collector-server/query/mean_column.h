/* The mean duration of a function's calls, as an SQL expression. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_MEAN_COLUMN_H
#define SJ_COLLECTOR_SERVER_QUERY_MEAN_COLUMN_H

/* SJ_MEAN_NS: of all calls that ended, in ns; NULL without any. total_ns of function_stats leaves
 * out calls within calls of the same function, so it is no sum to divide by their number: that of
 * the call paths, where each call has its own, is. */
#define SJ_MEAN_NS(session_id, function_id)                                                        \
    "(SELECT sum(mp.total_ns) / nullif(sum(mp.calls), 0) FROM call_paths AS mp"                    \
    " WHERE mp.session_id = " session_id " AND mp.function_id = " function_id ")"

#endif
