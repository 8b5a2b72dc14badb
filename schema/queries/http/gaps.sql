-- Statements of http/route_gaps.c.

-- name: gaps
-- A gap has its stream, or the thread's number in the session, or neither. Losses are sorted before
-- waits.
SELECT g.gap_id AS id, coalesce(t.number, g.thread_number) AS thread_number, t.name AS thread_name, g.reason,
    g.calls, g.events, g.start_ns, g.end_ns, {gap_is_wait} AS is_wait
FROM gaps g
LEFT JOIN streams s ON s.stream_id = g.stream_id
LEFT JOIN threads t ON t.thread_id = coalesce(s.thread_id, (SELECT n.thread_id FROM threads n
    WHERE n.session_id = g.session_id AND n.number = g.thread_number))
WHERE g.session_id = ?1
ORDER BY is_wait, g.start_ns, g.gap_id
LIMIT ?2 OFFSET ?3
