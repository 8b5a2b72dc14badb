-- title: How many calls ran at once
-- question: For how long did so many calls of a function run at the same time?
-- needs: calls
-- parameter: session = last | the session
-- parameter: function = main | name of the function
-- parameter: from_ns = 0 | only calls that were entered from this moment on, ns since the session's start
-- parameter: to_ns = 9223372036854775807 | up to this one
-- column: running | calls at the same time
-- column: times | how often it came to that
-- column: total_ns | for how long together, ns
-- column: longest_ns | for how long at a stretch, ns
-- example: sojourn sql --cluster URL --query concurrent --param function=worker
SELECT running, count() AS times, sum(until - since) AS total_ns, max(until - since) AS longest_ns
FROM (
    SELECT since, until, running, place, last
    FROM (
        SELECT arraySort(groupArray(moment)) AS sinces, arrayPopFront(arrayPushBack(sinces, toInt64(0))) AS untils,
               arrayCumSum(arraySort((step, moment) -> moment, groupArray(steps), groupArray(moment))) AS levels,
               length(sinces) AS last
        FROM (
            SELECT moment, sum(step) AS steps
            FROM (
                SELECT start_ns AS moment, toInt64(1) AS step FROM calls WHERE session = :session AND name = :function
                      AND start_ns >= :from_ns AND start_ns <= :to_ns
                UNION ALL
                SELECT start_ns + assumeNotNull(duration_ns) AS moment, toInt64(-1) AS step FROM calls
                WHERE session = :session AND name = :function AND duration_ns IS NOT NULL
                      AND start_ns >= :from_ns AND start_ns <= :to_ns) AS q4
            GROUP BY moment
            HAVING steps != 0) AS q3) AS q2
    ARRAY JOIN sinces AS since, untils AS until, levels AS running, arrayEnumerate(sinces) AS place) AS q1
WHERE place < last
GROUP BY running
ORDER BY running
