-- title: What preceded loss
-- question: Which calls of its thread were the last before each gap?
-- parameter: session = last | the session
-- parameter: calls = 5 | how many before each
-- parameter: limit = 100 | how many rows
-- column: gap_ns | when the gap began, ns since the session's start
-- column: lost_calls | calls that are missing in it
-- column: reason | why
-- column: before | 1: the last call that was entered before it, 2: the one before
-- column: function | its function
-- column: call_id | the call
-- example: sojourn sql --query before_loss
WITH lost AS (
    SELECT * FROM gaps WHERE session_id = :session AND (calls > 0 OR events > 0)
    ORDER BY start_ns, gap_id LIMIT :limit)
SELECT g.start_ns AS gap_ns, g.calls AS lost_calls, g.reason,
       row_number() OVER (PARTITION BY g.gap_id ORDER BY c.call_id DESC) AS before,
       f.name AS function, c.call_id
FROM lost AS g
CROSS JOIN calls AS c ON c.call_id IN (
    SELECT l.call_id FROM calls AS l
    WHERE l.stream_id = g.stream_id AND l.start_ns <= g.start_ns AND l.start_ns >= g.start_ns - 10000000
    ORDER BY l.call_id DESC LIMIT :calls)
LEFT JOIN functions AS f ON f.function_id = c.function_id
ORDER BY gap_ns, g.gap_id, before
LIMIT :limit
