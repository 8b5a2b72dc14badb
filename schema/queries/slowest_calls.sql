-- title: Slowest calls
-- question: Which single calls of a session took longest?
-- parameter: session = last | the session
-- parameter: limit = 20 | how many
-- column: call_id | the call
-- column: function | its function
-- column: thread | name of its thread
-- column: start_ns | ns since the session's start
-- column: duration_ns | between entry and exit, ns
-- column: self_ns | of that, outside of recorded callees, ns
-- column: ending | returned, unwound, open, truncated
-- example: sojourn sql --query slowest_calls --param limit=5
SELECT c.call_id, f.name AS function, t.name AS thread, c.start_ns, c.duration_ns, c.self_ns, c.ending
FROM calls AS c
LEFT JOIN functions AS f ON f.function_id = c.function_id
LEFT JOIN threads AS t ON t.thread_id = c.thread_id
WHERE c.session_id = :session AND c.duration_ns IS NOT NULL
ORDER BY c.duration_ns DESC
LIMIT :limit
