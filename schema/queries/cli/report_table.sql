-- Statements of cli/report_table.c.

-- name: report_open_calls_count
SELECT count(*) FILTER (WHERE is_counted), count(*) FILTER (WHERE NOT is_counted),
    min(start_ns) FILTER (WHERE NOT is_counted)
FROM open_now(?1) AS o
WHERE (?12 IS NULL OR function_id IN (SELECT value FROM json_each(?12)))
AND (?11 IS NULL OR EXISTS (SELECT 1 FROM json_each(?11) AS w WHERE w.value ->> 0 = o.stream_id
    AND o.start_ns >= w.value ->> 1 AND o.start_ns < w.value ->> 2))

-- name: report_summary
SELECT count(*) FILTER (WHERE chosen), coalesce(sum(calls) FILTER (WHERE chosen), 0),
    coalesce(sum(untrusted) FILTER (WHERE chosen), 0), max(coalesce(sum(self_ns), 0), %s)
FROM (SELECT *, ?12 IS NULL OR function_id IN (SELECT value FROM json_each(?12)) AS chosen FROM %s
    WHERE session_id = ?1)

-- name: report_kind
SELECT CASE WHEN s.parent_session_id IS NOT NULL THEN 'a flight dump of session ' || s.parent_session_id ||
    (SELECT iif(count(*) = 0, '', '; sums count ' || count(*) || iif(count(*) = 1, ' call',
    ' calls') || ' that began before it, single calls do not') FROM open_before(?1)) WHEN s.mode = 'flight'
    THEN 'a flight recording, whose calls are in its dumps: ' ||
    coalesce((SELECT 'session ' || group_concat(d.session_id, ', ') FROM sessions AS d
    WHERE d.parent_session_id = s.session_id), 'none was made') END, (SELECT count(*) FROM gaps AS g
    WHERE g.session_id = ?1 AND {gap_is_wait}), (SELECT coalesce(sum(g.end_ns - g.start_ns), 0)
    FROM gaps AS g WHERE g.session_id = ?1 AND {gap_is_wait}), {not_recorded(s.session_id)}
FROM sessions AS s
WHERE s.session_id = ?1

-- name: report_header
SELECT session_id, name, command, started_realtime_ns, ended_realtime_ns, state,
    max(lost_calls, coalesce(device_lost_calls, 0)), (SELECT count(*) FROM threads WHERE session_id = ?1),
    missing_blocks, missing_calls
FROM sessions
WHERE session_id = ?1
