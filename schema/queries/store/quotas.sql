-- Counts what devices with a quota use of it. The quota and its use are read once a batch.

-- name: quota_any
-- row: any
SELECT EXISTS (SELECT 1 FROM device_quotas)

-- name: quota_read
-- bind: uuid blob
-- row: bytes_limit optional, sessions_limit optional, bytes count, sessions count, refusals count
SELECT q.bytes, q.sessions, coalesce(u.bytes, 0), coalesce(u.sessions, 0), coalesce(u.refusals, 0)
FROM devices d
LEFT JOIN device_quotas q USING (device_id)
LEFT JOIN device_usage u ON u.device_id = d.device_id
AND u.day = :day
WHERE d.uuid = :uuid

-- name: quota_note
-- bind: uuid blob, bytes count, sessions count, bytes_limit count, sessions_limit count, refusals count
INSERT INTO device_usage (device_id, day, bytes, sessions, bytes_limit, sessions_limit, refusals)
SELECT device_id, :day, :bytes, :sessions, :bytes_limit, :sessions_limit, :refusals
FROM devices
WHERE uuid = :uuid
ON CONFLICT (device_id) DO UPDATE SET day = excluded.day, bytes = excluded.bytes,
    sessions = excluded.sessions, bytes_limit = excluded.bytes_limit,
    sessions_limit = excluded.sessions_limit, refusals = excluded.refusals
