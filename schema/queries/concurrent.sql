-- title: How many calls ran at once
-- question: For how long did so many calls of a function run at the same time?
-- parameter: session = last | the session
-- parameter: function = main | name of the function; one with fewer calls is faster: 2 s for a million
-- parameter: from_ns = 0 | only calls that were entered from this moment on, ns since the session's start; a short time is fast on any recording
-- parameter: to_ns = 9223372036854775807 | up to this one
-- column: running | calls at the same time
-- column: times | how often it came to that
-- column: total_ns | for how long together, ns
-- column: longest_ns | for how long at a stretch, ns
-- example: sojourn sql --query concurrent --param function=worker
SELECT running, count(*) AS times, sum(to_ns - from_ns) AS total_ns,
       max(to_ns - from_ns) AS longest_ns
FROM concurrency(:session, :function, :from_ns, :to_ns)
WHERE to_ns IS NOT NULL
GROUP BY running
ORDER BY running
