-- Statements of cli/cmd_sessions.c.

-- part: sessions
(SELECT s.session_id AS id, lower(hex(s.uuid)) AS uuid, s.state, s.started_realtime_ns,
    s.ended_realtime_ns - s.started_realtime_ns AS length_ns, s.stored_calls AS calls, s.lost_calls AS lost,
    s.lost_events, s.folded_calls AS folded, s.stored_bytes AS bytes, d.name AS device, CASE s.name
    WHEN '' THEN s.command ELSE s.name END AS session FROM sessions AS s JOIN devices AS d USING (device_id))
ORDER BY started_realtime_ns DESC, id DESC

-- name: sessions_data
SELECT *
FROM {sessions}

-- name: sessions_table
SELECT id, substr(uuid, 1, 8) AS uuid, state, datetime(started_realtime_ns / 1000000000,
    'unixepoch') AS started_utc, coalesce(format_duration(length_ns), '') AS length, calls, lost,
    lost_events, folded, bytes, device, session
FROM {sessions}
