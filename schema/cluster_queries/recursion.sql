-- title: Recursion
-- question: Which functions call themselves, directly or through others, and how deep?
-- parameter: session = last | the session
-- column: function | name
-- column: recursive_calls | calls with the same function above them
-- column: calls | all calls
-- column: deepest | greatest depth of a recursive call, counted from the outermost call
-- column: recursive_paths | call paths in which it occurs again
-- example: sojourn sql --cluster URL --query recursion
SELECT called AS function, recursive_calls, calls, deepest, recursive_paths
FROM (SELECT function AS one, sumIf(n, recursive = 1) AS recursive_calls, maxIf(depth, recursive = 1) AS deepest,
             countIf(recursive = 1) AS recursive_paths, sum(n) AS calls
      FROM (SELECT function, recursive, depth, calls AS n FROM call_paths WHERE session = :session) AS q2 GROUP BY function HAVING recursive_paths > 0) AS q1
ANY LEFT JOIN (SELECT function AS one, any(name) AS called FROM functions WHERE session = :session GROUP BY function) AS q3 USING one
ORDER BY recursive_calls DESC
