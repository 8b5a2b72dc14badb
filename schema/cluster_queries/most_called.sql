-- title: Most called functions
-- question: Which functions are called most often, and what does a call cost?
-- parameter: session = last | the session
-- parameter: limit = 20 | how many
-- column: function | name
-- column: calls | number of calls
-- column: calls_per_s | calls a second of the session
-- column: mean_ns | mean time between entry and exit of a call, ns
-- example: sojourn sql --cluster URL --query most_called
SELECT name AS function, calls,
       if(span = 0, NULL, calls * 1e9 / span) AS calls_per_s,
       if(ended = 0, NULL, intDivOrZero(spent, toInt64(ended))) AS mean_ns
FROM (SELECT name, calls, spent, ended, 1 AS one
      FROM (SELECT function AS key, name, calls FROM function_stats WHERE session = :session) AS q1
      ANY LEFT JOIN (SELECT callee AS key, sum(spent_ns) AS spent, sum(n) AS ended
                     FROM (SELECT callee, total_ns AS spent_ns, calls AS n FROM call_edges WHERE session = :session) AS q2 GROUP BY callee) AS q3 USING key) AS q4
ANY LEFT JOIN (SELECT ended_realtime_ns - started_realtime_ns AS span, 1 AS one FROM sessions WHERE session = :session) AS q5 USING one
ORDER BY calls DESC, function
LIMIT :limit
