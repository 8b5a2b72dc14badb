-- title: Most called functions
-- question: Which functions are called most often, and what does a call cost?
-- parameter: session = last | the session
-- parameter: limit = 20 | how many
-- column: function | name
-- column: calls | number of calls
-- column: calls_per_s | calls a second of the session
-- column: mean_ns | mean time between entry and exit of a call, ns
-- example: sojourn sql --query most_called
SELECT f.name AS function, s.calls,
       s.calls * 1e9 / nullif(x.ended_realtime_ns - x.started_realtime_ns, 0) AS calls_per_s,
       (SELECT sum(p.total_ns) / nullif(sum(p.calls), 0) FROM call_paths AS p
        WHERE p.session_id = s.session_id AND p.function_id = s.function_id) AS mean_ns
FROM function_stats AS s
JOIN sessions AS x USING (session_id)
LEFT JOIN functions AS f USING (function_id)
WHERE s.session_id = :session
ORDER BY s.calls DESC
LIMIT :limit
