-- title: Longest blocks of the main thread
-- question: Which calls kept the main thread busy for longer than a frame?
-- parameter: session = last | the session
-- parameter: least_ns = 16666667 | shortest block, ns: a frame at 60 Hz
-- parameter: limit = 50 | how many
-- column: call_id | the call
-- column: function | its function
-- column: depth | calls above it
-- column: start_ns | ns since the session's start
-- column: duration_ns | ns
-- column: self_ns | of that, outside of recorded callees, ns
-- example: sojourn sql --query main_thread_blocks --param least_ns=100000000
SELECT c.call_id, f.name AS function, c.depth, c.start_ns, c.duration_ns, c.self_ns
FROM threads AS t
JOIN calls AS c ON c.session_id = t.session_id AND c.thread_id = t.thread_id
LEFT JOIN functions AS f ON f.function_id = c.function_id
WHERE t.session_id = :session AND t.is_main = 1 AND c.duration_ns >= :least_ns
ORDER BY c.self_ns DESC, c.duration_ns DESC
LIMIT :limit
