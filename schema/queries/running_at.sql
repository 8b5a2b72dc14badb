-- title: What ran at a moment
-- question: Which calls of all threads were running at one moment?
-- parameter: session = last | the session
-- parameter: at_ns = 1000000 | the moment, ns since the session's start
-- column: thread | name of the thread
-- column: depth | calls above it
-- column: function | its function
-- column: start_ns | when it was entered, ns since the session's start
-- column: duration_ns | between entry and exit, ns; NULL: it never ended, as far as is stored
-- column: call_id | the call
-- example: sojourn sql --query running_at --param at_ns=2000000
WITH running AS (
    SELECT thread_id, stream_id, depth, function_id, start_ns, duration_ns, call_id
    FROM calls
    WHERE session_id = :session AND start_ns <= :at_ns AND end_ns >= :at_ns AND ending <> 'open'
    UNION ALL
    SELECT s.thread_id, o.stream_id, o.depth, o.function_id, o.start_ns, NULL,
           o.stream_id << 38 | o.call_index
    FROM streams AS s JOIN open_calls AS o USING (stream_id)
    WHERE s.session_id = :session AND o.start_ns <= :at_ns
    UNION ALL -- in streams without their last block: recorded still, or lost
    SELECT thread_id, stream_id, depth, function_id, start_ns, NULL, call_id
    FROM calls
    WHERE session_id = :session AND start_ns <= :at_ns AND end_ns IS NULL
          AND stream_id IN (SELECT stream_id FROM streams WHERE session_id = :session AND ended = 0))
SELECT t.name AS thread, r.depth, f.name AS function, r.start_ns, r.duration_ns, r.call_id
FROM running AS r
LEFT JOIN functions AS f ON f.function_id = r.function_id
LEFT JOIN threads AS t ON t.thread_id = r.thread_id
WHERE r.duration_ns IS NOT NULL OR t.ended_ns IS NULL
      OR t.ended_ns >= :at_ns -- what never ended ran as long as its thread
ORDER BY r.stream_id, r.depth
