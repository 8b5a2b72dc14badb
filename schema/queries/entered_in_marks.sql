-- title: Which test cases entered a function
-- question: In which marks was a function called, how often and how long?
-- parameter: session = last | the session
-- parameter: function = * | name of the function, a glob
-- column: mark | name
-- column: from_ns | begin, ns since the session's start
-- column: function | the function
-- column: calls | its calls that began in the mark
-- column: total_ns | their time, ns
-- example: sojourn sql --query entered_in_marks --param function='parse_*'
WITH spans AS (
    SELECT b.session_id, b.name AS mark, b.at_ns AS from_ns,
           coalesce((SELECT min(e.at_ns) FROM marks AS e
                     WHERE e.session_id = b.session_id AND e.name = b.name AND e.is_end = 1
                       AND e.at_ns >= b.at_ns), 9223372036854775807) AS to_ns
    FROM marks AS b
    WHERE b.session_id = :session AND b.is_end = 0)
SELECT s.mark, s.from_ns, f.name AS function, a.calls, a.total_ns
FROM spans AS s
JOIN call_aggregate(s.session_id, s.from_ns, s.to_ns) AS a
JOIN functions AS f ON f.function_id = a.function_id
WHERE f.name GLOB :function
ORDER BY s.from_ns, a.calls DESC
