-- Statements of query/compare_measure.c.

-- name: compare_paths
SELECT f.symbol_key, p.function_id, p.calls, p.total_ns, p.self_ns, f.symbol = '', p.path_id,
    p.parent_path_id, p.recursive, p.histogram, CAST(s.tick_ns_numerator AS REAL) / s.tick_ns_denominator,
    p.cpu_self_ns, p.allocated_self_bytes
FROM call_paths AS p
JOIN sessions AS s USING (session_id)
JOIN functions AS f USING (function_id)
WHERE p.session_id = ?1
ORDER BY p.path_id
