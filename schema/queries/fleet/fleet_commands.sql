-- Statements of fleet/fleet_commands.c.

-- name: fleet_poll_note
-- Queries read its members. Any value but an object would end them for all devices. A poll without news
-- writes at most once a minute, so that a thousand waiting devices cost no transactions.
INSERT INTO device_status (device_id, polled_realtime_ns, status)
VALUES (?1, ?2, iif(json_valid(?3) AND json_type(?3) = 'object', ?3, '{}'))
ON CONFLICT (device_id) DO UPDATE SET polled_realtime_ns = excluded.polled_realtime_ns,
    status = excluded.status
WHERE status <> excluded.status OR polled_realtime_ns < excluded.polled_realtime_ns - 60000000000

-- name: fleet_commands_restarted
-- Another process that claimed the command may still work on it.
UPDATE commands SET state = 'failed', finished_realtime_ns = ?3,
    result = 'the device was restarted before it could answer'
WHERE device_id = ?1
AND state = 'sent'
AND command_id <= ?2
AND (?5 OR coalesce(claimed_by, 0) IN (0, ?4))

-- name: fleet_commands_next
-- A daemon that cannot claim commands claims this one by receiving it.
UPDATE commands SET state = 'sent', sent_realtime_ns = ?3, claimed_by = coalesce(claimed_by,
    iif(?4 = 0, 0, NULL))
WHERE command_id = (SELECT min(command_id) FROM commands WHERE device_id = ?1 AND state IN ('queued', 'sent')
    AND command_id > ?2 AND (claimed_by IS NULL OR claimed_by = ?4))
AND EXISTS (SELECT 1 FROM device_tokens WHERE device_id = ?1 AND revoked_realtime_ns IS NULL)
RETURNING command_id, device_id, timeout_ms, kind, arguments

-- name: fleet_copy_note
INSERT INTO device_copies
VALUES (?1, ?2, ?2)
ON CONFLICT (device_id) DO UPDATE SET last_seen_realtime_ns = excluded.last_seen_realtime_ns
WHERE last_seen_realtime_ns < excluded.last_seen_realtime_ns - 60000000000

-- name: fleet_commands_expire
UPDATE commands SET state = 'timed_out', finished_realtime_ns = ?1, result = CASE state WHEN 'preparing'
    THEN 'the session did not come to its end in time'
    WHEN 'queued' THEN 'the device did not ask for commands in time'
    ELSE 'the device did not answer in time' END
WHERE state IN ('preparing', 'queued', 'sent')
AND created_realtime_ns + timeout_ms * 1000000 < ?1
