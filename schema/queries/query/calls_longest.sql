-- Statements of query/calls_longest.c.

-- name: calls_longest_bounds
-- The longest call of each block, longest first. Only the ends of the passes depend on these values, so
-- rounding does no harm.
SELECT CAST(b.max_duration_ticks * 1.0 * s.tick_ns_numerator / s.tick_ns_denominator AS INTEGER) AS ns
FROM sessions AS s
CROSS JOIN streams AS t ON t.session_id = s.session_id
CROSS JOIN blocks AS b ON b.stream_id = t.stream_id AND b.kind = 1 AND b.call_count > 0
WHERE s.session_id BETWEEN ?1 AND ?2
AND t.stream_id BETWEEN ?3 AND ?4
AND (?5 = 0 OR t.thread_id = ?6)
ORDER BY ns DESC
LIMIT ?7
