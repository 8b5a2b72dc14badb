-- title: Most called functions
-- question: Which functions are called most often, and what does a call cost?
-- parameter: session = last | the session
-- parameter: limit = 20 | how many
-- column: function | name
-- column: calls | number of calls
-- column: calls_per_s | calls a second of the session
-- column: mean_ns | time between entry and exit a call, ns
-- example: sojourn sql --cluster URL --query most_called
SELECT name AS function, calls,
       if(span = 0, NULL, calls * 1e9 / span) AS calls_per_s,
       if(calls = 0, NULL, intDivOrZero(total_ns, toInt64(calls))) AS mean_ns
FROM (SELECT name, calls, total_ns, 1 AS one FROM function_stats WHERE session = :session) AS q1
ANY LEFT JOIN (SELECT ended_realtime_ns - started_realtime_ns AS span, 1 AS one FROM sessions WHERE session = :session) AS q2 USING one
ORDER BY calls DESC, function
LIMIT :limit
