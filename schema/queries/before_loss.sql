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
WITH found AS (
    SELECT g.gap_id, g.start_ns AS gap_ns, g.calls AS lost_calls, g.reason, c.call_id,
           c.function_id,
           row_number() OVER (PARTITION BY g.gap_id ORDER BY c.call_id DESC) AS before
    FROM gaps AS g
    CROSS JOIN calls AS c ON c.stream_id = g.stream_id AND c.start_ns <= g.start_ns
                         AND c.start_ns >= g.start_ns - 10000000
    WHERE g.session_id = :session)
SELECT gap_ns, lost_calls, reason, before, f.name AS function, call_id
FROM found
LEFT JOIN functions AS f ON f.function_id = found.function_id
WHERE before <= :calls
ORDER BY gap_ns, gap_id, before
LIMIT :limit
