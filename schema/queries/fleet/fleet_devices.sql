-- Statements of fleet/fleet_devices.c.

-- name: fleet_quota_put
INSERT INTO device_quotas (device_id, bytes, sessions, set_by, set_realtime_ns)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (device_id) DO UPDATE SET bytes = excluded.bytes, sessions = excluded.sessions,
    set_by = excluded.set_by, set_realtime_ns = excluded.set_realtime_ns

-- name: fleet_quota_remove
DELETE FROM device_quotas
WHERE device_id = ?1
