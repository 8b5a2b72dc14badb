-- title: First calls after a mark
-- question: Which call of each function was the first after a mark?
-- parameter: session = last | the session
-- parameter: mark = * | name of the mark, a glob
-- parameter: function = * | only functions whose name matches this glob
-- parameter: limit = 100 | how many
-- column: mark | name
-- column: mark_ns | when it was set, ns since the session's start
-- column: function | the function
-- column: after_ns | from the mark to its first call, ns
-- column: calls | its calls up to the end of the mark, or of the session
-- column: call_id | the first call
-- example: sojourn sql --query first_after_mark
WITH spans AS (
    SELECT b.name AS mark, b.at_ns AS from_ns,
           coalesce((SELECT min(e.at_ns) FROM marks AS e
                     WHERE e.session_id = b.session_id AND e.name = b.name AND e.is_end = 1
                       AND e.at_ns >= b.at_ns), 9223372036854775807) AS to_ns
    FROM marks AS b
    WHERE b.session_id = :session AND b.is_end = 0 AND b.name GLOB :mark)
SELECT s.mark, s.from_ns AS mark_ns, f.name AS function, min(c.start_ns) - s.from_ns AS after_ns,
       count(*) AS calls, c.call_id
FROM spans AS s
CROSS JOIN calls AS c ON c.start_ns >= s.from_ns AND c.start_ns < s.to_ns
JOIN functions AS f ON f.function_id = c.function_id
WHERE c.session_id = :session AND f.name GLOB :function
GROUP BY s.mark, s.from_ns, c.function_id
ORDER BY s.from_ns, after_ns
LIMIT :limit
