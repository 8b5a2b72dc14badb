-- A session that is being recorded.

-- name: latest_triggers
-- row: number, at_ns, event text, subject text, value, actions text, suppressed, dump optional
SELECT t.number, t.at_ns, t.event, t.subject, t.value, t.actions, t.suppressed,
       (SELECT s.session_id FROM sessions s WHERE s.uuid = t.child_session_uuid) AS dump
FROM triggers t WHERE t.session_id = :session ORDER BY t.number DESC LIMIT 200

-- name: flight_dumps
-- row: session_id, cause text, state text, started_realtime_ns id, stored_calls, length_ns optional
SELECT s.session_id, s.cause, s.state, s.started_realtime_ns, s.stored_calls,
       (SELECT max(last_leave_ns) - min(first_enter_ns) FROM streams x WHERE x.session_id = s.session_id) AS length_ns
FROM sessions s WHERE s.parent_session_id = :session ORDER BY s.session_id DESC LIMIT 200

-- name: hot_so_far
-- row: function_id, name text, calls, self_ns, is_self_estimate
SELECT f.function_id, f.name, s.calls, s.self_ns, {is_self_estimate(:session, s.function_id)} AS is_self_estimate
FROM function_stats s JOIN functions f USING (function_id)
WHERE s.session_id = :session ORDER BY s.self_ns DESC LIMIT 15

-- name: latest_values
-- row: call_id id, start_ns, duration_ns optional, flags, function_id, name text, arguments optional_text
-- row: result optional_text
-- The latest calls with recorded values, newest first: at most 12 of each thread, 12 in all.
WITH types AS MATERIALIZED (SELECT function_id, position, max(name) AS name FROM value_types
  WHERE session_id = :session GROUP BY function_id, position),
latest AS MATERIALIZED (SELECT c.call_id, c.function_id, c.start_ns, c.duration_ns, c.flags FROM streams s
  JOIN calls c ON c.session_id = s.session_id AND c.call_id IN (SELECT DISTINCT a.call_id FROM arguments a
    WHERE a.session_id = s.session_id AND a.call_id BETWEEN s.stream_id << 38 AND (s.stream_id + 1 << 38) - 1
    ORDER BY a.call_id DESC LIMIT 12)
  WHERE s.session_id = :session ORDER BY c.start_ns DESC LIMIT 12),
kept AS MATERIALIZED (SELECT l.call_id, a.position, a.kind, coalesce(max(t.name), '') AS name,
    coalesce(a.value, a.note, '') || iif(a.note = 'cut', '…', '') AS text
  FROM latest l JOIN arguments a ON a.session_id = :session AND a.call_id = l.call_id
  LEFT JOIN types t ON t.function_id = l.function_id AND t.position = a.position
  GROUP BY l.call_id, a.position, a.kind ORDER BY a.position)
SELECT l.call_id, l.start_ns, l.duration_ns, l.flags, l.function_id, f.name,
  (SELECT group_concat(iif(k.name = '', '', k.name || '=') || k.text, ', ') FROM kept k
    WHERE k.call_id = l.call_id AND k.position > 0) AS arguments,
  (SELECT group_concat(iif(k.kind IN ('errno', 'thrown'), k.kind || ' ', '') || k.text, ', ') FROM kept k
    WHERE k.call_id = l.call_id AND k.position = 0) AS result
FROM latest l JOIN functions f USING (function_id) ORDER BY l.start_ns DESC
