-- Statements of cli/stall_report.c.

-- part: stall_report_near_ns
2000000000

-- name: stall_report_reported
SELECT r.session_id, r.payload ->> 'watch', r.payload ->> 'waited_ns',
    r.at_ns - (r.payload ->> 'age_ns') + (r.payload ->> 'waited_ns') / 2, (SELECT d.session_id
    FROM triggers t JOIN sessions d ON d.uuid = t.child_session_uuid WHERE t.session_id = r.session_id
    AND t.event = 'jank' AND t.subject = r.payload ->> 'watch' AND t.at_ns BETWEEN r.at_ns
    AND r.at_ns + {stall_report_near_ns} ORDER BY t.at_ns LIMIT 1), (SELECT number FROM threads h
    WHERE h.session_id = r.session_id AND h.tid = r.payload ->> 'tid'), r.report_id,
    s.started_realtime_ns + r.at_ns, datetime((s.started_realtime_ns + r.at_ns) / 1000000000, 'unixepoch')
FROM reports r
JOIN sessions s USING (session_id)
WHERE r.monitor = 'stall'
ORDER BY r.session_id, r.at_ns

-- name: stall_report_fired
SELECT t.session_id, t.subject, t.value, t.at_ns - t.value / 2, d.session_id, t.thread_number, NULL,
    s.started_realtime_ns + t.at_ns, datetime((s.started_realtime_ns + t.at_ns) / 1000000000, 'unixepoch')
FROM triggers t
JOIN sessions s USING (session_id)
LEFT JOIN sessions d ON d.uuid = t.child_session_uuid
WHERE t.event = 'jank'
AND t.value > 0
AND NOT EXISTS (SELECT 1 FROM reports r WHERE r.session_id = t.session_id AND r.monitor = 'stall'
    AND r.payload ->> 'watch' = t.subject AND t.at_ns BETWEEN r.at_ns AND r.at_ns + {stall_report_near_ns})
ORDER BY t.session_id, t.at_ns

-- name: stall_report_json
-- A stall as JSON. Parameters: ?1 is the session of its calls, ?2 its thread, ?3 its moment, ?4 its
-- report, ?5 to ?8 its other members.
SELECT json_object('session_id', ?5, 'watch', ?6, 'waited_ns', ?7, 'moment_ns', ?3, 'realtime_ns',
    CAST(?8 AS TEXT), 'calls_session_id', ?1, 'report', (SELECT json(payload) FROM reports
    WHERE report_id = ?4), 'threads', (SELECT json_group_array(json(each))
    FROM ( SELECT json_object('number', t.number, 'tid', t.tid, 'name', t.name, 'is_stalled',
    json(iif(t.number = ?2, 'true', 'false')), 'open_calls',
    ( SELECT json_group_array(json_object('function', name, 'until_then_ns', ?3 - start_ns, 'duration_ns',
    duration_ns, 'depth', depth)) FROM ( SELECT f.name, c.start_ns, c.duration_ns, c.depth FROM calls c
    JOIN functions f USING (function_id) WHERE c.session_id = ?1 AND c.thread_id = t.thread_id
    AND c.start_ns <= ?3 AND (c.end_ns IS NULL OR c.end_ns > ?3) ORDER BY c.depth))) AS each FROM threads t
    WHERE t.session_id = ?1 AND t.started_ns <= ?3 ORDER BY t.number <> ?2, t.number)))

-- name: stall_threads
-- row: thread_id, number, tid, name text
SELECT thread_id, number, tid, name
FROM threads
WHERE session_id = :session_id
AND started_ns <= :moment_ns
ORDER BY number <> :stalled_number, number

-- name: stall_open_calls
-- row: function text, until_then_ns, duration_ns optional, depth
SELECT f.name, :moment_ns - c.start_ns, c.duration_ns, c.depth
FROM calls c
JOIN functions f USING (function_id)
WHERE c.session_id = :session_id
AND c.thread_id = :thread_id
AND c.start_ns <= :moment_ns
AND (c.end_ns IS NULL OR c.end_ns > :moment_ns)
ORDER BY c.depth

-- name: stall_stacks
SELECT t.value ->> 'name', t.value ->> 'state', t.value ->> 'waits_for', t.value ->> 'held_by',
    t.value -> 'holds', t.value -> 'frames'
FROM reports r, json_each(r.payload, '$.threads') t
WHERE r.report_id = ?1
ORDER BY t.key

-- name: stall_pauses
SELECT count(*), coalesce(sum(p.value ->> 'ns'), 0), coalesce(max(p.value ->> 'ns'), 0)
FROM reports r, json_each(r.payload, '$.pauses') p
WHERE r.report_id = ?1

-- name: stall_safepoints
-- Selects nothing if the report does not tell of safepoints.
SELECT payload ->> '$.safepoints.count' AS safepoints, payload ->> '$.safepoints.ms'
FROM reports
WHERE report_id = ?1
AND safepoints IS NOT NULL

-- name: stall_list
-- bind: json text
SELECT value
FROM json_each(:json)
