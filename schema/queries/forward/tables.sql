-- The rows of a session that are forwarded to a cluster, in the order of the columns of forward_tables.c. ?1 is the
-- session_id.

-- part: device_column(column)
(SELECT d.{column} FROM sessions JOIN devices AS d USING (device_id) WHERE session_id = ?1)

-- name: forward_functions
SELECT function_id FROM function_stats WHERE session_id = ?1

-- name: forward_function_stats
SELECT function_id, {device_column(uuid)}, {device_column(name)}, calls, total_ns, self_ns, min_ns, max_ns,
    unwound, untrusted, coalesce(untimed_calls, 0), sampled_calls, error_ns, histogram FROM function_stats
    WHERE session_id = ?1

-- name: forward_call_edges
SELECT nullif(caller_function_id, 0), callee_function_id, calls, total_ns, self_ns FROM call_edges WHERE
    session_id = ?1

-- name: forward_call_paths
SELECT path_id, parent_path_id, function_id, depth, recursive, rare, calls, total_ns, self_ns, min_ns,
    max_ns, unwound, untrusted, histogram FROM call_paths WHERE path_id >= ?1 << 32 AND path_id < (?1 + 1)
    << 32 AND +session_id = ?1

-- name: forward_slow_calls
SELECT function_id, place, call_id, start_ns, duration_ns, self_ns, ending, flags FROM slow_calls WHERE
    session_id = ?1

-- name: forward_gaps
SELECT reason, calls, events, start_ns, end_ns, thread_number FROM gaps WHERE session_id = ?1 ORDER BY
    gap_id

-- name: forward_marks
SELECT number, name, is_end, at_ns, thread_number, source FROM marks WHERE session_id = ?1 ORDER BY number

-- name: forward_coverage
SELECT m.build_id, coalesce(x.path, m.path), x.function_count, x.hooked_count, (SELECT count(*) FROM
    function_stats AS s WHERE s.session_id = ?1 AND s.function_id BETWEEN m.first_function_id AND
    m.first_function_id + m.function_count - 1) FROM session_modules AS x JOIN modules AS m USING
    (module_id) WHERE session_id = ?1 ORDER BY number

-- name: forward_threads
SELECT t.number, t.tid, t.name, t.is_main, sum(s.calls), max(s.last_leave_ns) - min(s.first_enter_ns),
    max(s.max_depth), t.dropped_calls, t.dropped_events, t.waited_ns FROM streams AS s JOIN threads AS t
    USING (thread_id) WHERE s.session_id = ?1 GROUP BY s.thread_id

-- name: forward_open_calls
SELECT o.function_id, o.stream_id, t.number, o.depth, o.start_ns, o.flags FROM streams AS s JOIN open_calls
    AS o USING (stream_id) LEFT JOIN threads AS t ON t.thread_id = s.thread_id WHERE s.session_id = ?1

-- name: forward_unhooked
SELECT reason, count(*), sum(size_bytes), min(name) FROM unhooked_functions WHERE session_id = ?1 GROUP BY
    reason

-- name: forward_zombie_reports
SELECT z.fingerprint, z.kind, z.used_in, z.freed_in, z.allocated_in, r.at_ns, r.thread_name FROM
    zombie_reports AS r JOIN zombies AS z USING (zombie_id) WHERE r.session_id = ?1 ORDER BY r.report_id

-- name: forward_left_out
-- The names of tables that this lab leaves out: ?2 is a JSON array.
SELECT value FROM json_each(?2) WHERE ?1 > 0

-- name: forward_sessions
SELECT 0, (SELECT uuid FROM lab), d.uuid, d.name, d.model, d.os, d.build, d.machine, d.tags, s.name,
    s.command, s.mode, s.state, s.cause, s.tags, (SELECT m.build_id FROM session_modules AS x JOIN modules
    AS m USING (module_id) WHERE x.session_id = s.session_id ORDER BY x.number LIMIT 1),
    s.started_realtime_ns, s.ended_realtime_ns, s.stored_blocks, s.stored_bytes, s.stored_calls,
    s.stored_events, s.lost_calls, s.lost_events, s.folded_paths, s.folded_calls, s.sent_calls,
    s.device_lost_calls, s.traced_cpu_ns FROM sessions AS s JOIN devices AS d USING (device_id) WHERE
    session_id = ?1

-- name: forward_commands
-- ?1 is the command_id. A command that was removed has only NULL.
SELECT ?1, c.command_id IS NULL, d.uuid, d.name, c.kind, c.arguments, c.state, c.requested_by, c.timeout_ms,
    c.created_realtime_ns, c.sent_realtime_ns, c.finished_realtime_ns, c.result, c.file_bytes FROM (SELECT
    1) LEFT JOIN commands AS c ON c.command_id = ?1 LEFT JOIN devices AS d ON d.device_id = c.device_id

-- name: forward_calls
-- The calls that began from ?2 until ?3.
SELECT function_id, call_id, parent_id, depth, (SELECT t.number FROM threads AS t WHERE t.thread_id =
    calls.thread_id), start_ns, duration_ns, self_ns, ending, flags FROM calls WHERE session_id = ?1 AND
    start_ns >= ?2 AND start_ns < ?3
