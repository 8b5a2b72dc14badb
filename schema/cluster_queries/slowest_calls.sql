-- title: Slowest calls
-- question: Which single calls of a session took longest?
-- needs: calls
-- parameter: session = last | the session
-- parameter: limit = 20 | how many
-- column: call_id | the call
-- column: function | its function
-- column: thread | name of its thread
-- column: start_ns | ns since the session's start
-- column: duration_ns | between entry and exit, ns
-- column: self_ns | of that, outside of recorded callees, ns
-- column: ending | returned, unwound, open, truncated
-- example: sojourn sql --cluster URL --query slowest_calls --param limit=5
SELECT call_id, function, thread, start_ns, duration_ns, self_ns, ending
FROM (SELECT call_id, name AS function, assumeNotNull(thread_number) AS number, start_ns, duration_ns, self_ns, ending
      FROM calls WHERE session = :session AND duration_ns IS NOT NULL) AS q1
ANY LEFT JOIN (SELECT thread_number AS number, name AS thread FROM threads WHERE session = :session) AS q2 USING number
ORDER BY duration_ns DESC, call_id
LIMIT :limit
