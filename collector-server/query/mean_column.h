/* The mean duration of a function's calls, as an SQL expression. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_MEAN_COLUMN_H
#define SJ_COLLECTOR_SERVER_QUERY_MEAN_COLUMN_H

/* Mean of all calls that ended, in ns; NULL without any. total_ns of function_stats excludes calls
 * inside calls of the same function, so it cannot be divided by their number. The sum over call
 * paths can, because each call has its own path there. */
#define SJ_MEAN_NS(session_id, function_id)                                                        \
    "(SELECT sum(mp.total_ns) / nullif(sum(mp.calls), 0) FROM call_paths AS mp"                    \
    " WHERE mp.session_id = " session_id " AND mp.function_id = " function_id ")"

#endif
