-- Statements of cli/session_highlights.c.

-- name: session_highlights_functions
-- ?1 is the session
SELECT f.name, s.self_ns, s.calls, {is_self_estimate(s.session_id, s.function_id)}
FROM function_stats s
LEFT JOIN functions f USING (function_id)
WHERE s.session_id = ?1
AND s.self_ns > 0
ORDER BY s.self_ns DESC
LIMIT ?2

-- name: session_highlights_frames
-- The innermost open calls of the process that crashed first, in the stream that entered a call last.
SELECT f.name, o.depth
FROM open_calls o
LEFT JOIN functions f USING (function_id)
WHERE o.stream_id = (SELECT o.stream_id FROM processes p JOIN threads t ON t.session_id = p.session_id
    AND t.process_number = p.number JOIN streams s USING (thread_id) JOIN open_calls o USING (stream_id)
    WHERE p.session_id = ?1 AND p.number = (SELECT min(number) FROM processes WHERE session_id = ?1
    AND exit_signal IS NOT NULL) ORDER BY o.start_ns DESC, o.depth DESC LIMIT 1)
ORDER BY o.depth DESC
LIMIT ?2
