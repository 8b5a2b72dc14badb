-- title: Hot spots
-- question: Where does the time go, by self time?
-- parameter: session = last | the session
-- parameter: limit = 20 | how many
-- column: function | name
-- column: self_ns | time outside of recorded callees, ns
-- column: share | share of the self time of all functions, 0 to 1
-- column: calls | number of calls
-- column: mean_self_ns | self time a call, ns
-- example: sojourn sql --cluster URL --query hot_spots
SELECT name AS function, self_ns, self_ns / all_ns AS share, calls,
       if(calls = 0, NULL, intDivOrZero(self_ns, toInt64(calls))) AS mean_self_ns
FROM (SELECT name, self_ns, calls, 1 AS one FROM function_stats WHERE session = :session) AS q1
ANY LEFT JOIN (SELECT sum(self_ns) AS all_ns, 1 AS one FROM function_stats WHERE session = :session) AS q2 USING one
ORDER BY self_ns DESC, function
LIMIT :limit
