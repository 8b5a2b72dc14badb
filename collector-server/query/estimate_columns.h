/* SQL expressions that say whether times are estimates, because calls were counted without a clock.
 * They use the view function_estimates, which alone defines the rule. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_ESTIMATE_COLUMNS_H
#define SJ_COLLECTOR_SERVER_QUERY_ESTIMATE_COLUMNS_H

#define SJ_ESTIMATE_COLUMN(session_id, function_id, column)                                        \
    "EXISTS (SELECT 1 FROM function_estimates AS fe WHERE fe.session_id = " session_id             \
    " AND fe.function_id = " function_id " AND fe." column ")"

/* 1 if all times of the function are estimates. */
#define SJ_IS_ESTIMATE(session_id, function_id)                                                    \
    SJ_ESTIMATE_COLUMN(session_id, function_id, "is_estimate")

/* 1 if its self time is an estimate, even if only because of its callees. */
#define SJ_IS_SELF_ESTIMATE(session_id, function_id)                                               \
    SJ_ESTIMATE_COLUMN(session_id, function_id, "is_self_estimate")

/* 1 if calls that it made were counted, so that self times of its calls are estimates. */
#define SJ_CALLS_COUNTED(session_id, function_id)                                                  \
    SJ_ESTIMATE_COLUMN(session_id, function_id, "calls_counted")

#endif
