-- title: What ran between two moments
-- question: Which calls of a thread were entered between two moments, in order?
-- needs: calls
-- parameter: session = last | the session
-- parameter: thread = * | name of the thread, a glob
-- parameter: from_ns = 0 | from this moment on, ns since the session's start
-- parameter: to_ns = 1000000 | up to this one
-- parameter: limit = 100 | how many
-- column: call_id | the call
-- column: thread | name of its thread
-- column: start_ns | when it was entered, ns since the session's start
-- column: duration_ns | between entry and exit, ns; NULL: it is open
-- column: depth | calls above it
-- column: function | its function
-- example: sojourn sql --cluster URL --query calls_between --param from_ns=1000000 --param to_ns=2000000
SELECT call_id, thread, start_ns, duration_ns, depth, function
FROM (SELECT assumeNotNull(thread_number) AS number, call_id, start_ns, duration_ns, depth, name AS function FROM calls
      WHERE session = :session AND start_ns >= :from_ns AND start_ns <= :to_ns) AS q1
ALL INNER JOIN (SELECT thread_number AS number, name AS thread FROM threads WHERE session = :session AND name LIKE :thread) AS q2 USING number
ORDER BY start_ns, call_id
LIMIT :limit
