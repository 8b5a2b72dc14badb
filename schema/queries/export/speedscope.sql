-- Statements of export/speedscope.c.

-- name: speedscope_frames
SELECT f.name, m.path, l.file, l.line
FROM functions AS f
JOIN modules AS m USING (module_id)
LEFT JOIN function_lines AS l USING (function_id)
WHERE f.function_id = ?1
