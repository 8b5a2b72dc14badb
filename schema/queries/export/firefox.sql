-- Statements of export/firefox.c and export/firefox_tables.c.

-- name: firefox_function
SELECT f.name, f.module_id, l.file, l.line
FROM functions AS f
LEFT JOIN function_lines AS l USING (function_id)
WHERE f.function_id = ?1

-- name: firefox_losses
SELECT coalesce(stream_id, 0), calls, start_ns, end_ns
FROM gaps
WHERE session_id = ?1
AND calls > 0
AND (?2 = 0 OR stream_id = ?2)
ORDER BY start_ns, gap_id
