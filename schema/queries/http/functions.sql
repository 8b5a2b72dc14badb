-- Statements of http/route_functions.c.

-- part: functions_quantile(q)
-- Limits a quantile to the measured range, because the middle of a histogram bin may be outside of it.
histogram_ns(x.histogram, {q}, ?3, ?4, x.min_ns, x.max_ns)

-- part: functions_untimed
coalesce(x.untimed_calls, 0) AS untimed_calls, x.error_ns, {is_self_estimate(x.session_id,
    x.function_id)} AS is_self_estimate

-- part: functions_quantiles
{functions_quantile(0.5)} AS p50_ns, {functions_quantile(0.9)} AS p90_ns,
    {functions_quantile(0.95)} AS p95_ns, {functions_quantile(0.99)} AS p99_ns

-- part: functions_mean
{mean_ns(x.session_id, x.function_id)}

-- part: functions_open_calls
(SELECT c.function_id, count(*) AS open_calls FROM streams t JOIN open_calls c USING (stream_id)
    WHERE t.session_id = ?1 GROUP BY c.function_id)

-- part: functions_columns
x.function_id AS id, f.name, m.path AS module, x.calls, x.total_ns, x.self_ns, {functions_mean} AS mean_ns,
    x.min_ns, x.max_ns, {functions_quantiles}, coalesce(e.open_calls, 0) AS open_calls, x.unwound,
    x.untrusted, {functions_untimed}

-- name: functions_rows
SELECT {functions_columns}
FROM (SELECT x.function_id AS id, row_number() OVER () AS place FROM (SELECT x.function_id
    FROM function_stats x JOIN functions f ON f.function_id = x.function_id WHERE x.session_id = ?1
    AND f.name LIKE ?2 ESCAPE '\' ORDER BY %s %s, x.function_id LIMIT ?5 OFFSET ?6) x) o
CROSS JOIN function_stats x ON x.session_id = ?1 AND x.function_id = o.id
JOIN functions f ON f.function_id = o.id
JOIN modules m ON m.module_id = f.module_id
LEFT JOIN {functions_open_calls} e ON e.function_id = o.id
ORDER BY o.place

-- name: functions_totals
SELECT count(*) AS matching, coalesce(sum(x.calls), 0) AS calls, coalesce(sum(x.self_ns), 0) AS self_ns,
    (SELECT coalesce(sum(y.self_ns), 0) FROM function_stats y WHERE y.session_id = ?1) AS session_self_ns
FROM function_stats x
JOIN functions f ON f.function_id = x.function_id
WHERE x.session_id = ?1
AND f.name LIKE ?2 ESCAPE '\'

-- name: functions_by_mean
{functions_mean}

-- name: functions_by_p50
{functions_quantile(0.5)}

-- name: functions_by_p90
{functions_quantile(0.9)}

-- name: functions_by_p95
{functions_quantile(0.95)}

-- name: functions_by_p99
{functions_quantile(0.99)}
