-- title: What the slowest calls did
-- question: Which functions took the time of the slowest calls of a function?
-- needs: calls
-- parameter: session = last | the session
-- parameter: function = main | name of the function
-- parameter: calls = 5 | how many of its slowest calls to read
-- parameter: limit = 20 | how many functions
-- column: function | what was called
-- column: calls | how often, in all of the slowest calls
-- column: self_ns | self time, ns
-- column: share | share of the time of the slowest calls, 0 to 1
-- example: sojourn sql --cluster URL --query inside_slowest --param function=main
SELECT function, calls, self_ns, self_ns / all_ns AS share
FROM (
    SELECT any(called) AS function, count() AS calls, sum(own) AS self_ns, 1 AS one
    FROM (
            SELECT stream, outer_id, outer_start, outer_ns, behind
            FROM (
              SELECT bitShiftRight(call_id, 38) AS stream, call_id AS outer_id, depth AS outer_depth, start_ns AS outer_start,
                     duration_ns AS outer_ns
              FROM calls WHERE session = :session AND duration_ns IS NOT NULL AND function GLOBAL IN (
                  SELECT function FROM function_stats WHERE session = :session AND name = :function
                  ORDER BY total_ns DESC LIMIT 1)
              ORDER BY duration_ns DESC LIMIT :calls) AS q3
            ANY LEFT JOIN (
              SELECT outer_id, min(call) AS behind
              FROM (
              SELECT bitShiftRight(call_id, 38) AS stream, call_id AS outer_id, depth AS outer_depth, start_ns AS outer_start,
                     duration_ns AS outer_ns
              FROM calls WHERE session = :session AND duration_ns IS NOT NULL AND function GLOBAL IN (
                  SELECT function FROM function_stats WHERE session = :session AND name = :function
                  ORDER BY total_ns DESC LIMIT 1)
              ORDER BY duration_ns DESC LIMIT :calls) AS q5
              ALL INNER JOIN (SELECT bitShiftRight(call_id, 38) AS stream, call_id AS call, depth FROM calls
                              WHERE session = :session) AS q6 USING stream
              WHERE call > outer_id AND depth <= outer_depth
              GROUP BY outer_id) AS q4 USING outer_id) AS q2
    ALL INNER JOIN (SELECT bitShiftRight(call_id, 38) AS stream, call_id AS call, function AS key, name AS called, self_ns AS own
                    FROM calls WHERE session = :session) AS q7 USING stream
    WHERE call > outer_id AND (behind = 0 OR call < behind)
    GROUP BY key) AS q1
ANY LEFT JOIN (
    SELECT sum(outer_ns) AS all_ns, 1 AS one
    FROM (
              SELECT bitShiftRight(call_id, 38) AS stream, call_id AS outer_id, depth AS outer_depth, start_ns AS outer_start,
                     duration_ns AS outer_ns
              FROM calls WHERE session = :session AND duration_ns IS NOT NULL AND function GLOBAL IN (
                  SELECT function FROM function_stats WHERE session = :session AND name = :function
                  ORDER BY total_ns DESC LIMIT 1)
              ORDER BY duration_ns DESC LIMIT :calls) AS q9) AS q8 USING one
ORDER BY self_ns DESC
LIMIT :limit
