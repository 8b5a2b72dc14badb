-- Statements of export/call_part.c.

-- name: call_part
SELECT %s
FROM json_each(?11) AS w
CROSS JOIN calls AS c %s
WHERE c.session_id = ?1 %s
AND c.stream_id = (w.value ->> 0)
AND c.start_ns >= (w.value ->> 1)
AND c.start_ns < (w.value ->> 2)
