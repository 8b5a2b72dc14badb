-- Statements of cli/cmd_doctor.c.

-- name: doctor_silent_devices
SELECT d.name
FROM devices d
JOIN device_tokens t USING (device_id)
LEFT JOIN device_status s USING (device_id)
WHERE t.revoked_realtime_ns IS NULL
AND max(d.last_seen_realtime_ns, coalesce(s.polled_realtime_ns, 0)) < (unixepoch('now') - 86400) * 1000000000
