-- Statements of cli/waits.c.

-- name: waits_calls
-- by stream, in the order of entries
SELECT c.call_id, c.parent_id, c.function_id, c.thread_id, c.start_ns, c.duration_ns
FROM calls AS c
WHERE c.session_id = ?1
AND c.duration_ns >= ?2
AND (?11 IS NULL OR EXISTS (SELECT 1 FROM json_each(?11) AS w WHERE w.value ->> 0 = c.stream_id
    AND c.start_ns >= w.value ->> 1 AND c.start_ns < w.value ->> 2))
ORDER BY c.call_id
