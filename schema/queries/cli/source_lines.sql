-- Statements of cli/source_lines.c.

-- name: source_line
SELECT m.module_id, f.offset, m.path, m.build_id, l.file, l.line
FROM functions AS f
JOIN modules AS m USING (module_id)
LEFT JOIN function_lines AS l USING (function_id)
WHERE f.function_id = ?1
