-- title: Time per mark
-- question: What did each test case or phase spend its time on?
-- needs: calls
-- parameter: session = last | the session
-- parameter: limit = 5 | functions a mark
-- column: mark | name
-- column: number | first, second ... time
-- column: from_ns | begin, ns since the session's start
-- column: to_ns | end, ns since the session's start
-- column: function | name
-- column: calls | calls that began in the mark
-- column: self_ns | their self time, ns
-- example: sojourn sql --cluster URL --query per_mark
SELECT mark, number, from_ns, to_ns, function, calls, self_ns
FROM (
    SELECT mark, from_ns, to_ns, any(called) AS function, count() AS calls, sum(own) AS self_ns
    FROM (SELECT function AS key, name AS called, start_ns, assumeNotNull(self_ns) AS own FROM calls
          WHERE session = :session AND duration_ns IS NOT NULL) AS q2
    CROSS JOIN (
        SELECT mark, begun AS from_ns, arrayFilter(e -> e >= begun, ends) AS later,
               if(empty(later), toInt64(9223372036854775807), later[1]) AS to_ns
        FROM (SELECT name AS mark, at_ns AS begun FROM marks WHERE session = :session AND is_end = 0) AS q4
        ANY LEFT JOIN (SELECT name AS mark, arraySort(groupArray(at_ns)) AS ends FROM marks
                       WHERE session = :session AND is_end = 1 GROUP BY name) AS q5 USING mark
        WHERE notEmpty(later)) AS q3
    WHERE start_ns >= from_ns AND start_ns < to_ns
    GROUP BY mark, from_ns, to_ns, key) AS q1
ANY LEFT JOIN (
    SELECT mark, from_ns, number
    FROM (SELECT name AS mark, arraySort(groupArray(at_ns)) AS begins FROM marks
          WHERE session = :session AND is_end = 0 GROUP BY name) AS q7
    ARRAY JOIN begins AS from_ns, arrayEnumerate(begins) AS number) AS q6 USING mark, from_ns
ORDER BY from_ns, mark, self_ns DESC
LIMIT :limit BY mark, number
