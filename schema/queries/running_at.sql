-- title: What ran at a moment
-- question: Which calls of all threads were running at one moment?
-- parameter: session = last | the session
-- parameter: at_ns = 1000000 | the moment, ns since the session's start
-- column: thread | name of the thread
-- column: depth | calls above it
-- column: function | its function
-- column: start_ns | when it was entered, ns since the session's start
-- column: duration_ns | between entry and exit, ns
-- column: call_id | the call
-- example: sojourn sql --query running_at --param at_ns=2000000
SELECT t.name AS thread, c.depth, f.name AS function, c.start_ns, c.duration_ns, c.call_id
FROM calls AS c
LEFT JOIN functions AS f ON f.function_id = c.function_id
LEFT JOIN threads AS t ON t.thread_id = c.thread_id
WHERE c.session_id = :session AND c.start_ns <= :at_ns AND c.end_ns >= :at_ns
ORDER BY c.stream_id, c.depth
