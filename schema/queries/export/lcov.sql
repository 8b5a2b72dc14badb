-- Statements of export/lcov.c.

-- name: lcov_functions
SELECT l.file, l.line, f.name, coalesce(max(s.calls), 0)
FROM session_modules AS sm
JOIN functions AS f USING (module_id)
JOIN function_lines AS l USING (function_id)
LEFT JOIN function_stats AS s ON s.session_id = ?1 AND s.function_id = f.function_id
WHERE sm.session_id = ?1
AND (s.calls > 0 OR NOT EXISTS (SELECT 1 FROM unhooked_functions AS u WHERE u.session_id = ?1
    AND u.function_id = f.function_id))
GROUP BY l.file, l.line, f.name
ORDER BY l.file, l.line, f.name
