/* Which times are estimates, because calls were counted without a clock: SQL expressions that ask
 * the view function_estimates, the one place with the rule. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_ESTIMATE_COLUMNS_H
#define SJ_COLLECTOR_SERVER_QUERY_ESTIMATE_COLUMNS_H

#define SJ_ESTIMATE_COLUMN(session_id, function_id, column)                                        \
    "EXISTS (SELECT 1 FROM function_estimates AS fe WHERE fe.session_id = " session_id             \
    " AND fe.function_id = " function_id " AND fe." column ")"

/* SJ_IS_ESTIMATE: all times of the function are. */
#define SJ_IS_ESTIMATE(session_id, function_id)                                                    \
    SJ_ESTIMATE_COLUMN(session_id, function_id, "is_estimate")

/* SJ_IS_SELF_ESTIMATE: its self time is, if only because of what it calls. */
#define SJ_IS_SELF_ESTIMATE(session_id, function_id)                                               \
    SJ_ESTIMATE_COLUMN(session_id, function_id, "is_self_estimate")

/* SJ_CALLS_COUNTED: calls that it made were counted, so that self times of its calls are. */
#define SJ_CALLS_COUNTED(session_id, function_id)                                                  \
    SJ_ESTIMATE_COLUMN(session_id, function_id, "calls_counted")

#endif
