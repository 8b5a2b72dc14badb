-- title: Which test cases entered a function
-- question: In which marks was a function called, how often and how long?
-- needs: calls
-- parameter: session = last | the session
-- parameter: function = * | name of the function, a glob
-- column: mark | name
-- column: from_ns | begin, ns since the session's start
-- column: function | the function
-- column: calls | its calls that began in the mark
-- column: total_ns | their time, ns
-- example: sojourn sql --cluster URL --query entered_in_marks --param function='parse_*'
SELECT mark, from_ns, any(called) AS function, sum(n) AS calls, sum(spent) AS total_ns
FROM (
    SELECT mark, from_ns, key, any(name) AS called, count() AS n, groupArray(start_ns) AS starts,
           groupArray(start_ns + took) AS ends, groupArray(depth) AS depths, groupArray(took) AS times,
           arraySum(arrayMap((s, e, d, t) -> if(arrayExists((s1, e1, d1) -> s1 <= s AND e1 >= e AND d1 < d,
                                                             starts, ends, depths), 0, t),
                             starts, ends, depths, times)) AS spent
    FROM (SELECT function AS key, name, bitShiftRight(call_id, 38) AS stream, start_ns, assumeNotNull(duration_ns) AS took,
                 depth
          FROM calls WHERE session = :session AND name LIKE :function AND duration_ns IS NOT NULL) AS q2
    CROSS JOIN (
        SELECT mark, begun AS from_ns, arrayFilter(e -> e >= begun, ends) AS later,
               if(empty(later), toInt64(9223372036854775807), later[1]) AS to_ns
        FROM (SELECT name AS mark, at_ns AS begun FROM marks WHERE session = :session AND is_end = 0) AS q4
        ANY LEFT JOIN (SELECT name AS mark, arraySort(groupArray(at_ns)) AS ends FROM marks
                       WHERE session = :session AND is_end = 1 GROUP BY name) AS q5 USING mark) AS q3
    WHERE start_ns >= from_ns AND start_ns < to_ns
    GROUP BY mark, from_ns, key, stream) AS q1
GROUP BY mark, from_ns, key
ORDER BY from_ns, calls DESC
