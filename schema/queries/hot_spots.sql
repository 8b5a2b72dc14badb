-- title: Hot spots
-- question: Where does the time go, by self time?
-- parameter: session = last | the session
-- parameter: limit = 20 | how many
-- column: function | name
-- column: self_ns | time outside of recorded callees, ns
-- column: share | share of the self time of all functions, 0 to 1
-- column: calls | number of calls
-- column: mean_self_ns | self time a call, ns
-- example: sojourn sql --query hot_spots
SELECT f.name AS function, s.self_ns,
       CAST(s.self_ns AS REAL) / sum(s.self_ns) OVER () AS share,
       s.calls, s.self_ns / nullif(s.calls, 0) AS mean_self_ns
FROM function_stats AS s LEFT JOIN functions AS f USING (function_id)
WHERE s.session_id = :session
ORDER BY s.self_ns DESC
LIMIT :limit
