-- The rows of "sojourn report": function_stats of a session, or the same columns of chosen calls. ?1 is
-- the session. ?11 has the chosen windows, each [stream_id, from_ns, to_ns]. ?12 has the ids of the chosen
-- functions.

-- name: report_whole_session
-- SQLite computes the mean only if it is used.
(SELECT st.*, {mean_ns(st.session_id, st.function_id)} AS mean_ns FROM function_stats AS st)

-- part: report_window_sums
-- The calls in the windows, grouped by function. Columns of the whole session are NULL.
SELECT ?1 AS session_id, a.function_id, sum(a.calls) AS calls, sum(a.total_ns) AS total_ns,
    sum(a.self_ns) AS self_ns, min(a.min_ns) AS min_ns, max(a.max_ns) AS max_ns,
    sum(a.duration_ns) / sum(a.calls) AS mean_ns, NULL AS untrusted, NULL AS histogram, NULL AS cpu_ns,
    NULL AS cpu_self_ns, NULL AS allocations, NULL AS allocated_bytes, NULL AS frees, NULL AS freed_bytes,
    NULL AS allocated_self_bytes

-- part: report_window_calls
FROM json_each(?11) AS w
CROSS JOIN call_aggregate(?1, w.value ->> 1, w.value ->> 2, w.value ->> 0) AS a

-- part: report_untimed_share
CAST(n.untimed_calls AS REAL) / u.untimed_calls

-- name: report_windows
({report_window_sums} {report_window_calls} GROUP BY a.function_id HAVING sum(a.calls) > 0)

-- name: report_windows_untimed
-- With the calls in the windows that were counted without a clock. The error of their total time grows
-- with the square root of their number, as for any sum. If fewer than two timed calls exist, the error is
-- all their time. This reads every call in the windows of functions with such calls.
({report_window_sums}, n.untimed_calls, CAST(u.error_ns * iif(u.sampled_calls < 2, {report_untimed_share},
    sqrt({report_untimed_share})) AS INTEGER) AS error_ns
{report_window_calls}
LEFT JOIN (SELECT c.function_id, count(*) AS untimed_calls FROM json_each(?11) AS x
    CROSS JOIN calls AS c ON c.session_id = ?1 AND c.stream_id = x.value ->> 0
    AND c.start_ns >= x.value ->> 1 AND c.start_ns < x.value ->> 2
    AND c.function_id IN (SELECT function_id FROM function_stats WHERE session_id = ?1 AND untimed_calls > 0)
    WHERE c.flags & 16 AND c.duration_ns IS NOT NULL GROUP BY c.function_id) AS n
    ON n.function_id = a.function_id
LEFT JOIN function_stats AS u ON u.session_id = ?1 AND u.function_id = n.function_id
GROUP BY a.function_id HAVING sum(a.calls) > 0)

-- name: report_open_calls
-- For each function, the number of chosen calls that were open at the end of the recording.
LEFT JOIN (SELECT o.function_id, count(*) AS open_calls FROM streams AS x
    JOIN open_calls AS o USING (stream_id) WHERE x.session_id = ?1
    AND (?11 IS NULL OR EXISTS (SELECT 1 FROM json_each(?11) AS w WHERE w.value ->> 0 = x.stream_id
    AND o.start_ns >= w.value ->> 1 AND o.start_ns < w.value ->> 2)) GROUP BY o.function_id) AS o
ON o.function_id = s.function_id

-- name: report_rows
-- The end of a statement: a table of the rows `s`, the table of open calls, a condition, an expression to
-- sort by, and ASC or DESC.
FROM %s AS s
LEFT JOIN functions AS f ON f.function_id = s.function_id
LEFT JOIN modules AS m ON m.module_id = f.module_id %s
WHERE s.session_id = ?1
AND (?12 IS NULL OR s.function_id IN (SELECT value FROM json_each(?12)))
AND %s
ORDER BY %s %s, s.function_id
LIMIT ?3

-- name: report_is_estimate
-- 1 if all times of the row are estimates.
{is_estimate(s.session_id, s.function_id)}

-- name: report_is_self_estimate
-- 1 if the self time of the row is an estimate, perhaps only because callees were estimated.
{is_self_estimate(s.session_id, s.function_id)}
