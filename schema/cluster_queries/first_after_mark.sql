-- title: First calls after a mark
-- question: Which call of each function was the first after a mark?
-- needs: calls
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
-- example: sojourn sql --cluster URL --query first_after_mark
SELECT mark, mark_ns, function, after_ns, calls, call_id
FROM (
    SELECT mark, from_ns AS mark_ns, any(called) AS function, min(start_ns) - from_ns AS after_ns, count() AS calls,
           argMin(call, start_ns) AS call_id
    FROM (SELECT function AS key, name AS called, start_ns, call_id AS call FROM calls
          WHERE session = :session AND name LIKE :function) AS q2
    CROSS JOIN (
        SELECT mark, begun AS from_ns, arrayFilter(e -> e >= begun, ends) AS later,
               if(empty(later), toInt64(9223372036854775807), later[1]) AS to_ns
        FROM (SELECT name AS mark, at_ns AS begun FROM marks WHERE session = :session AND is_end = 0 AND name LIKE :mark) AS q4
        ANY LEFT JOIN (SELECT name AS mark, arraySort(groupArray(at_ns)) AS ends FROM marks
                       WHERE session = :session AND is_end = 1 GROUP BY name) AS q5 USING mark) AS q3
    WHERE start_ns >= from_ns AND start_ns < to_ns
    GROUP BY mark, from_ns, key) AS q1
ORDER BY mark_ns, after_ns
LIMIT :limit
