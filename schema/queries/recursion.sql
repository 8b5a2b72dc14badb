-- title: Recursion
-- question: Which functions call themselves, directly or through others, and how deep?
-- parameter: session = last | the session
-- column: function | name
-- column: recursive_calls | calls with the same function above them
-- column: calls | all calls
-- column: deepest | greatest depth of a recursive call, counted from the outermost call
-- column: recursive_paths | call paths in which it occurs again
-- example: sojourn sql --query recursion
SELECT f.name AS function, sum(p.calls) FILTER (WHERE p.recursive) AS recursive_calls,
       sum(p.calls) AS calls, max(p.depth) FILTER (WHERE p.recursive) AS deepest,
       count(*) FILTER (WHERE p.recursive) AS recursive_paths
FROM call_paths AS p LEFT JOIN functions AS f USING (function_id)
WHERE p.session_id = :session
GROUP BY p.function_id
HAVING recursive_paths > 0
ORDER BY recursive_calls DESC
