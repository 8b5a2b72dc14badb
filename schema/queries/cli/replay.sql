-- Statements of cli/replay.c.

-- name: replay_streams
SELECT s.stream_id, t.number, coalesce(s.first_enter_ns, 0)
FROM streams AS s
LEFT JOIN threads AS t ON t.thread_id = s.thread_id
WHERE s.session_id = ?1
AND coalesce(s.first_enter_ns, 0) <= ?3
AND (?4 IS NULL OR t.name = ?4 OR CAST(t.tid AS TEXT) = ?4 OR CAST(t.number AS TEXT) = ?4)
AND s.stream_id BETWEEN ?5 >> 38 AND ?6 >> 38
ORDER BY s.first_enter_ns, s.stream_id

-- name: replay_calls
SELECT c.call_id, c.start_ns, c.duration_ns, c.depth, c.ending, f.name, c.flags
FROM calls AS c
LEFT JOIN functions AS f ON f.function_id = c.function_id
WHERE c.session_id = ?1
AND c.stream_id = ?4
AND c.start_ns BETWEEN ?2 AND ?3
AND c.call_id BETWEEN ?5 AND ?6
ORDER BY c.start_ns, c.call_id

-- name: replay_values
WITH v AS (SELECT position, CASE typeof(value) WHEN 'text' THEN quote(value) WHEN 'blob' THEN quote(value)
    WHEN 'null' THEN coalesce(note, 'NULL') ELSE value END || iif(note = 'cut', '...', '') AS text
    FROM arguments WHERE call_id = ?1 ORDER BY position)
SELECT coalesce((SELECT '(' || group_concat(text, ', ') || ')' FROM v WHERE position > 0),
    '') || coalesce((SELECT ' = ' || group_concat(text, ', ') FROM v WHERE position = 0), '')

-- name: replay_gaps
SELECT g.start_ns, g.end_ns - g.start_ns, g.calls, g.reason, coalesce(g.thread_number, t.number) AS thread
FROM gaps AS g
LEFT JOIN streams AS s ON s.stream_id = g.stream_id
LEFT JOIN threads AS t ON t.thread_id = s.thread_id
WHERE g.session_id = ?1
AND g.start_ns <= ?3
AND g.end_ns >= ?2
AND (g.stream_id IS NULL OR g.stream_id BETWEEN ?4 >> 38 AND ?5 >> 38)
AND (?6 IS NULL OR t.name = ?6 OR CAST(t.tid AS TEXT) = ?6 OR CAST(coalesce(t.number,
    g.thread_number) AS TEXT) = ?6)
ORDER BY g.start_ns
