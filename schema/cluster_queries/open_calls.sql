-- title: Calls that never ended
-- question: What was still running when its stream ended: at a crash, a kill, the end?
-- parameter: session = last | the session
-- column: stream_id | execution stack
-- column: thread | name
-- column: depth | calls above it
-- column: function | name
-- column: start_ns | ns since the session's start
-- column: before_recording | 1: it was open when recording began, and start_ns is that time
-- example: sojourn sql --cluster URL --query open_calls
SELECT stream_id, thread, depth, function, start_ns, before_recording
FROM (SELECT stream_id, assumeNotNull(thread_number) AS number, depth, name AS function, start_ns,
             bitAnd(flags, 1) AS before_recording
      FROM open_calls WHERE session = :session) AS q1
ANY LEFT JOIN (SELECT thread_number AS number, name AS thread FROM threads WHERE session = :session) AS q2 USING number
ORDER BY stream_id, depth
