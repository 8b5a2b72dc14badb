-- title: What ran between two moments
-- question: Which calls of a thread were entered between two moments, in order?
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
-- example: sojourn sql --query calls_between --param from_ns=1000000 --param to_ns=2000000
SELECT c.call_id, t.name AS thread, c.start_ns, c.duration_ns, c.depth, f.name AS function
FROM threads AS t
CROSS JOIN streams AS s ON s.thread_id = t.thread_id
CROSS JOIN calls AS c ON c.stream_id = s.stream_id
LEFT JOIN functions AS f ON f.function_id = c.function_id
WHERE t.session_id = :session AND t.name GLOB :thread
  AND c.start_ns >= :from_ns AND c.start_ns <= :to_ns
ORDER BY c.start_ns, c.call_id
LIMIT :limit
