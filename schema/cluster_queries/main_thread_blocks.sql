-- title: Longest blocks of the main thread
-- question: Which calls kept the main thread busy for longer than a frame?
-- needs: calls
-- parameter: session = last | the session
-- parameter: least_ns = 16666667 | shortest block, ns: a frame at 60 Hz
-- parameter: limit = 50 | how many
-- column: call_id | the call
-- column: function | its function
-- column: depth | calls above it
-- column: start_ns | ns since the session's start
-- column: duration_ns | ns
-- column: self_ns | of that, outside of recorded callees, ns
-- example: sojourn sql --cluster URL --query main_thread_blocks --param least_ns=100000000
SELECT call_id, function, depth, start_ns, duration_ns, self_ns
FROM (SELECT assumeNotNull(thread_number) AS number, call_id, name AS function, depth, start_ns, duration_ns, self_ns FROM calls
      WHERE session = :session AND duration_ns >= :least_ns) AS q1
ALL INNER JOIN (SELECT thread_number AS number, is_main FROM threads WHERE session = :session AND is_main = 1) AS q2 USING number
ORDER BY self_ns DESC, duration_ns DESC
LIMIT :limit
