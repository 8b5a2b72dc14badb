-- title: Calls that contain others
-- question: In which calls of one function was another called, how often and how long?
-- needs: calls
-- parameter: session = last | the session
-- parameter: outer = main | name of the containing function
-- parameter: inner = * | name of the function that was called in it
-- parameter: from_ns = 0 | only containing calls that were entered from this moment on, ns since the session's start
-- parameter: to_ns = 9223372036854775807 | up to this one
-- parameter: least_ns = 0 | only where the longest inner call took so many ns
-- parameter: limit = 20 | how many
-- column: call_id | the containing call
-- column: duration_ns | how long it took, ns
-- column: inner_calls | calls of the other function in it
-- column: inner_ns | their time, ns
-- column: first_after_ns | from its entry to that of the first, ns
-- column: longest_call_id | the longest of them
-- column: longest_ns | how long that took, ns
-- example: sojourn sql --cluster URL --query containing --param outer=main --param inner=work
SELECT call_id, duration_ns, inner_calls, inner_ns, first_after_ns, longest_call_id, longest_ns
FROM (
    SELECT outer_id AS call_id, any(outer_ns) AS duration_ns, count() AS inner_calls, groupArray(call) AS ids,
           groupArray(start_ns) AS starts, groupArray(took) AS times, groupArray(ended) AS ends,
           min(start_ns) - any(outer_start) AS first_after_ns, arrayReduce('max', times) AS longest_ns,
           arraySort(arrayFilter((id, t) -> t = longest_ns, ids, times))[1] AS longest_call_id,
           arraySum(arrayMap((id, e, t) -> if(arrayExists((id1, e1) -> id1 < id AND e1 >= e, ids, ends), 0, t),
                             ids, ends, times)) AS inner_ns
    FROM (
            SELECT stream, outer_id, outer_start, outer_ns, behind
            FROM (
              SELECT bitShiftRight(call_id, 38) AS stream, call_id AS outer_id, depth AS outer_depth, start_ns AS outer_start,
                     duration_ns AS outer_ns
              FROM calls WHERE session = :session AND name = :outer
                AND start_ns >= :from_ns AND start_ns <= :to_ns) AS q3
            ANY LEFT JOIN (
              SELECT outer_id, min(call) AS behind
              FROM (
              SELECT bitShiftRight(call_id, 38) AS stream, call_id AS outer_id, depth AS outer_depth, start_ns AS outer_start,
                     duration_ns AS outer_ns
              FROM calls WHERE session = :session AND name = :outer
                AND start_ns >= :from_ns AND start_ns <= :to_ns) AS q5
              ALL INNER JOIN (SELECT bitShiftRight(call_id, 38) AS stream, call_id AS call, depth FROM calls
                              WHERE session = :session) AS q6 USING stream
              WHERE call > outer_id AND depth <= outer_depth
              GROUP BY outer_id) AS q4 USING outer_id) AS q2
    ALL INNER JOIN (SELECT bitShiftRight(call_id, 38) AS stream, call_id AS call, start_ns, ifNull(duration_ns, toInt64(0)) AS took,
                           ifNull(start_ns + duration_ns, toInt64(-1)) AS ended
                    FROM calls WHERE session = :session AND name = :inner) AS q7 USING stream
    WHERE call > outer_id AND (behind = 0 OR call < behind)
    GROUP BY outer_id) AS q1
WHERE longest_ns >= :least_ns
ORDER BY longest_ns DESC, call_id
LIMIT :limit
