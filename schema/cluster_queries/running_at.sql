-- title: What ran at a moment
-- question: Which calls of all threads were running at one moment?
-- needs: calls
-- parameter: session = last | the session
-- parameter: at_ns = 1000000 | the moment, ns since the session's start
-- column: thread | name of the thread
-- column: depth | calls above it
-- column: function | its function
-- column: start_ns | when it was entered, ns since the session's start
-- column: duration_ns | between entry and exit, ns; NULL: it never ended, as far as is stored (its thread may have: the cluster does not know when)
-- column: call_id | the call
-- example: sojourn sql --cluster URL --query running_at --param at_ns=2000000
SELECT thread, depth, function, start_ns, duration_ns, call_id
FROM (SELECT assumeNotNull(thread_number) AS number, depth, name AS function, start_ns, duration_ns, call_id FROM calls
      WHERE session = :session AND start_ns <= :at_ns
            AND (duration_ns IS NULL OR start_ns + duration_ns >= :at_ns)) AS q1
ANY LEFT JOIN (SELECT thread_number AS number, name AS thread FROM threads WHERE session = :session) AS q2 USING number
ORDER BY bitShiftRight(call_id, 38), depth
