-- Statements of export/report_txt.c.

-- name: report_txt
SELECT s.calls, s.total_ns, s.self_ns, s.min_ns, s.max_ns, {mean_ns(s.session_id, s.function_id)},
    histogram_quantile(s.histogram, 0.5, s.session_id, s.min_ns, s.max_ns), histogram_quantile(s.histogram,
    0.95, s.session_id, s.min_ns, s.max_ns), histogram_quantile(s.histogram, 0.99, s.session_id, s.min_ns,
    s.max_ns), s.untrusted, s.untimed_calls, s.error_ns, {is_self_estimate(s.session_id, s.function_id)},
    coalesce(o.open_calls, 0), coalesce(f.name, '(function ' || s.function_id || ')')
FROM function_stats AS s
LEFT JOIN functions AS f USING (function_id)
LEFT JOIN (SELECT function_id, count(*) AS open_calls FROM open_now(?1) WHERE is_counted
    GROUP BY 1) AS o USING (function_id)
WHERE s.session_id = ?1
ORDER BY s.total_ns DESC, s.function_id
