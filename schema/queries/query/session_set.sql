-- Statements of query/session_set.c.

-- name: session_set_marks
-- The times between the marks of sessions. The first text is "" or " UNION ", the second a condition.
%sSELECT s.session_id, k.at_ns, coalesce((SELECT min(e.at_ns) FROM marks AS e
    WHERE e.session_id = k.session_id AND e.name = k.name AND e.is_end = 1 AND e.at_ns >= k.at_ns),
    9223372036854775807)
FROM sessions AS s
JOIN marks AS k ON k.session_id = s.session_id AND k.is_end = 0
WHERE 1%s
