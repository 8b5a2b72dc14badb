-- Statements of query/mark_spans.c.

-- name: mark_spans_spans
SELECT b.mark_id, b.at_ns, coalesce((SELECT min(e.at_ns) FROM marks AS e WHERE e.session_id = b.session_id
    AND e.name = b.name AND e.is_end = 1 AND e.at_ns >= b.at_ns), 9223372036854775807)
FROM marks AS b
WHERE b.session_id = ?1
AND b.is_end = 0
ORDER BY b.at_ns, b.mark_id
