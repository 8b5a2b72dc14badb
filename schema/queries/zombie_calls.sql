-- title: Calls around a use of freed memory
-- question: Which calls were open when the memory was allocated, freed and used, and which came just before?
-- parameter: zombie = 1 | the finding (zombies); its last report counts
-- parameter: calls = 5 | that many that had ended before each moment, of the 10 ms before it
-- column: moment | allocation, free or use
-- column: at_ns | when, ns since the session's start
-- column: thread | name of its thread
-- column: relation | open: the call ran then; before: it had ended
-- column: depth | calls above it
-- column: function | its function
-- column: start_ns | when it was entered, ns since the session's start
-- column: duration_ns | between entry and exit, ns; NULL: it did not end
-- column: call_id | the call
-- example: sojourn sql --query zombie_calls --param zombie=1
WITH stacks AS MATERIALIZED (
    SELECT r.session_id, e.key AS moment, e.value ->> 'tid' AS tid,
           CAST(((e.value ->> 'ticks') - s.started_ticks) * 1.0 * s.tick_ns_numerator / s.tick_ns_denominator AS INTEGER)
               AS at_ns
    FROM reports AS r
    JOIN sessions AS s USING (session_id)
    CROSS JOIN json_each(r.payload) AS e
    WHERE r.report_id = (SELECT max(report_id) FROM zombie_reports WHERE zombie_id = :zombie)
    AND e.key IN ('allocation', 'free', 'use') AND e.type = 'object'),
moments AS MATERIALIZED ( -- a number is given to one thread after another
    SELECT m.moment, m.at_ns, s.stream_id, t.name AS thread
    FROM stacks AS m
    JOIN threads AS t ON t.thread_id = (
        SELECT o.thread_id FROM threads AS o
        WHERE o.session_id = m.session_id AND o.tid = m.tid
        AND coalesce(o.started_ns, m.at_ns) <= m.at_ns AND coalesce(o.ended_ns, m.at_ns) >= m.at_ns
        ORDER BY o.started_ns DESC LIMIT 1)
    JOIN streams AS s USING (thread_id)),
around AS (
    SELECT m.*, 'open' AS relation, c.call_id
    FROM moments AS m
    CROSS JOIN calls AS c
    WHERE c.stream_id = m.stream_id AND c.start_ns <= m.at_ns AND c.end_ns >= m.at_ns AND c.ending <> 'open'
    UNION ALL
    SELECT m.*, 'open', (o.stream_id << 38) | o.call_index
    FROM moments AS m
    JOIN open_calls AS o USING (stream_id)
    WHERE o.start_ns <= m.at_ns
    UNION ALL
    SELECT m.*, 'before', c.call_id
    FROM moments AS m
    CROSS JOIN calls AS c
    WHERE c.call_id IN (
        SELECT l.call_id FROM calls AS l
        WHERE l.stream_id = m.stream_id AND l.start_ns BETWEEN m.at_ns - 10000000 AND m.at_ns AND l.end_ns < m.at_ns
        ORDER BY l.call_id DESC LIMIT :calls))
SELECT a.moment, a.at_ns, a.thread, a.relation, c.depth, f.name AS function, c.start_ns, c.duration_ns, c.call_id
FROM around AS a
CROSS JOIN calls AS c ON c.call_id = a.call_id
LEFT JOIN functions AS f ON f.function_id = c.function_id
ORDER BY a.at_ns, a.moment, a.relation = 'open', c.start_ns, c.depth
