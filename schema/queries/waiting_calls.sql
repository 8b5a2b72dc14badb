-- title: Waiting calls
-- question: Which functions have calls that take far longer than they usually do: locks, disk, network?
-- parameter: session = last | the session
-- parameter: factor = 20 | slowest call against the median
-- parameter: least_ns = 1000000 | slowest calls below this are left out, ns
-- column: function | name
-- column: calls | number of calls
-- column: p50_ns | half of its calls take at most this, ns
-- column: p99_ns | all but one in a hundred take at most this, ns
-- column: max_ns | the longest, ns
-- column: times | max_ns / p50_ns
-- example: sojourn sql --query waiting_calls --param factor=100
SELECT function, calls, p50_ns, p99_ns, max_ns, max_ns / max(p50_ns, 1) AS times
FROM (SELECT f.name AS function, s.calls, s.max_ns,
             histogram_quantile(s.histogram, 0.5, s.session_id, s.min_ns, s.max_ns) AS p50_ns,
             histogram_quantile(s.histogram, 0.99, s.session_id, s.min_ns, s.max_ns) AS p99_ns
      FROM function_stats AS s LEFT JOIN functions AS f USING (function_id)
      WHERE s.session_id = :session AND s.max_ns >= :least_ns)
WHERE max_ns > :factor * p50_ns
ORDER BY max_ns DESC
