-- title: Calls that never ended
-- question: What was still running when its stream ended: at a crash, a kill, the end?
-- parameter: session = last | the session
-- column: stream_id | execution stack
-- column: thread | name
-- column: depth | calls above it
-- column: function | name
-- column: start_ns | ns since the session's start
-- column: before_recording | 1: it was open when recording began, and start_ns is that time
-- example: sojourn sql --query open_calls
SELECT o.stream_id, t.name AS thread, o.depth, f.name AS function, o.start_ns,
       o.flags & 1 AS before_recording
FROM open_calls AS o
JOIN streams AS s USING (stream_id)
LEFT JOIN threads AS t ON t.thread_id = s.thread_id
LEFT JOIN functions AS f USING (function_id)
WHERE s.session_id = :session
ORDER BY o.stream_id, o.depth
