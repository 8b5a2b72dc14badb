-- Statements of export/function_txt.c.

-- name: function_txt_calls
SELECT c.call_id, f.name, c.start_ns, iif(c.ending = 'open', NULL, c.end_ns), c.depth, c.ending, c.flags
FROM calls AS c
LEFT JOIN functions AS f ON f.function_id = c.function_id
WHERE c.session_id = ?1
AND c.stream_id = ?2
ORDER BY c.call_id
