-- title: What the slowest calls did
-- question: Which functions took the time of the slowest calls of a function?
-- parameter: session = last | the session
-- parameter: function = main | name of the function
-- parameter: calls = 5 | how many of its slowest calls to read
-- parameter: limit = 20 | how many functions
-- column: function | what was called
-- column: calls | how often, in all of the slowest calls
-- column: self_ns | self time, ns
-- column: share | share of the time of the slowest calls, 0 to 1
-- example: sojourn sql --query inside_slowest --param function=main
WITH slowest AS MATERIALIZED (
    SELECT c.call_id, c.duration_ns
    FROM calls AS c
    WHERE c.session_id = :session AND c.duration_ns IS NOT NULL
      AND c.function_id = (SELECT s.function_id FROM function_stats AS s
                           JOIN functions AS f USING (function_id)
                           WHERE s.session_id = :session AND f.name = :function
                           ORDER BY s.total_ns DESC LIMIT 1)
    ORDER BY c.duration_ns DESC
    LIMIT :calls),
inside AS (
    SELECT d.function_id, d.self_ns
    FROM slowest AS s
    CROSS JOIN descendants(s.call_id) AS d)
SELECT f.name AS function, count(*) AS calls, sum(i.self_ns) AS self_ns,
       sum(i.self_ns) * 1.0 / (SELECT sum(duration_ns) FROM slowest) AS share
FROM inside AS i
LEFT JOIN functions AS f ON f.function_id = i.function_id
GROUP BY i.function_id
ORDER BY self_ns DESC
LIMIT :limit
