-- Statements of cli/unnamed_functions.c. ?1 is the session.

-- name: unnamed_functions_counts
-- The module with the most called functions without a name first.
SELECT m.path, sum(f.symbol = '') AS unnamed, count(*)
FROM function_stats s
JOIN functions f USING (function_id)
JOIN modules m USING (module_id)
WHERE s.session_id = ?1
AND s.calls > 0
GROUP BY f.module_id
HAVING unnamed > 0
ORDER BY unnamed DESC
LIMIT 1
