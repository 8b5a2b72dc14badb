-- Statements of http/route_overview.c.

-- name: overview_threads
SELECT t.number, t.process_number, t.tid, t.name, t.is_main, coalesce(sum(s.calls), 0) AS calls,
    min(s.first_enter_ns) AS first_enter_ns, max(s.last_leave_ns) AS last_leave_ns,
    max(s.last_leave_ns) - min(s.first_enter_ns) AS run_time_ns, coalesce(max(s.max_depth), 0) AS max_depth,
    t.dropped_calls, t.dropped_events, t.waited_ns
FROM threads t
LEFT JOIN streams s ON s.thread_id = t.thread_id
WHERE t.session_id = ?1
GROUP BY t.thread_id
ORDER BY calls DESC, t.number
LIMIT ?2

-- name: overview_modules
SELECT sm.number, m.module_id, coalesce(sm.path, m.path) AS path, m.machine, m.build_id AS build,
    sm.function_count, sm.hooked_count
FROM session_modules sm
JOIN modules m ON m.module_id = sm.module_id
WHERE sm.session_id = ?1
ORDER BY sm.hooked_count DESC, sm.number
LIMIT ?2

-- name: overview_loss
SELECT reason, count(*) AS gaps, sum(calls) AS calls, sum(events) AS events, min(start_ns) AS first_ns,
    max(end_ns) AS last_ns
FROM gaps AS g
WHERE session_id = ?1
AND NOT {gap_is_wait}
GROUP BY reason
ORDER BY calls DESC, reason
LIMIT ?2

-- name: overview_counts
SELECT (SELECT count(*) FROM function_stats WHERE session_id = ?1) AS functions, (SELECT count(*)
    FROM call_paths WHERE session_id = ?1) AS call_paths, (SELECT count(*) FROM threads
    WHERE session_id = ?1) AS threads, (SELECT count(*) FROM gaps AS g WHERE session_id = ?1
    AND NOT {gap_is_wait}) AS gaps, (SELECT count(*) FROM gaps AS g WHERE session_id = ?1
    AND {gap_is_wait}) AS waits, (SELECT coalesce(sum(end_ns - start_ns), 0) FROM gaps AS g
    WHERE session_id = ?1 AND {gap_is_wait}) AS waits_ns, (SELECT count(*) FROM sessions
    WHERE parent_session_id = ?1) AS dumps, (SELECT count(*) FROM unhooked_functions
    WHERE session_id = ?1) AS unhooked, (SELECT coalesce(sum(untrusted), 0) FROM function_stats
    WHERE session_id = ?1) AS untrusted_calls, (SELECT coalesce(sum(untimed_calls), 0) FROM function_stats
    WHERE session_id = ?1) AS untimed_calls, (SELECT count(*) FROM blocks b
    JOIN streams s ON s.stream_id = b.stream_id WHERE s.session_id = ?1 AND b.quarantined IS NOT NULL) AS
    quarantined_blocks, (SELECT count(*) FROM open_before(?1)) AS before_calls, o.open_calls,
    o.running_calls, o.running_since_ns
FROM (SELECT count(*) FILTER (WHERE is_counted) AS open_calls,
    count(*) FILTER (WHERE NOT is_counted) AS running_calls, min(start_ns) FILTER (WHERE NOT is_counted) AS
    running_since_ns FROM open_now(?1)) AS o

-- name: overview_session
{session_select}
WHERE s.session_id = ?1
