-- title: Time per mark
-- question: What did each test case or phase spend its time on?
-- parameter: session = last | the session
-- parameter: limit = 5 | functions a mark
-- column: mark | name
-- column: number | first, second ... time
-- column: from_ns | begin, ns since the session's start
-- column: to_ns | end, ns since the session's start
-- column: function | name
-- column: calls | calls that began in the mark
-- column: self_ns | their self time, ns
-- example: sojourn sql --query per_mark
WITH spans AS (
    SELECT b.session_id, b.name AS mark, b.at_ns AS from_ns,
           row_number() OVER (PARTITION BY b.name ORDER BY b.at_ns) AS number,
           (SELECT min(e.at_ns) FROM marks AS e
            WHERE e.session_id = b.session_id AND e.name = b.name AND e.is_end = 1
              AND e.at_ns >= b.at_ns) AS to_ns
    FROM marks AS b
    WHERE b.session_id = :session AND b.is_end = 0),
sums AS (
    SELECT s.mark, s.number, s.from_ns, s.to_ns, f.name AS function, a.calls, a.self_ns,
           row_number() OVER (PARTITION BY s.mark, s.number ORDER BY a.self_ns DESC) AS place
    FROM spans AS s
    JOIN call_aggregate(s.session_id, s.from_ns, s.to_ns) AS a
    LEFT JOIN functions AS f ON f.function_id = a.function_id
    WHERE s.to_ns IS NOT NULL)
SELECT mark, number, from_ns, to_ns, function, calls, self_ns
FROM sums
WHERE place <= :limit
ORDER BY from_ns, place
