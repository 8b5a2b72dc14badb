-- Statements of maintenance/removal.c.

-- name: removal_note
INSERT INTO removals(session_uuid, name, device, stored_calls, stored_bytes, reason, removed_realtime_ns)
SELECT s.uuid, s.name, d.name, s.stored_calls, s.stored_bytes, ?3, unixepoch() * 1000000000 + ?2
FROM sessions AS s
JOIN devices AS d USING (device_id)
WHERE s.session_id = ?1
