-- Statements of http/route_devices.c.

-- name: devices
-- Sorted by name, so that devices with the same name are neighbours.
SELECT d.device_id AS id, d.name, d.uuid, d.model, d.os, d.build, d.machine, d.agent_version, d.tags,
    d.first_seen_realtime_ns, max(d.last_seen_realtime_ns, coalesce(s.polled_realtime_ns,
    0)) AS last_seen_realtime_ns, CASE WHEN t.device_id IS NULL THEN 'no'
    WHEN t.revoked_realtime_ns IS NOT NULL THEN 'revoked' ELSE 'yes' END AS enrolled, (SELECT count(*)
    FROM devices o WHERE o.name = d.name) - 1 AS namesakes, EXISTS (SELECT 1 FROM copied_devices k
    WHERE k.device_id = d.device_id) AS copied, coalesce((SELECT q.quota FROM devices_over_quota q
    WHERE q.device_id = d.device_id), '') AS over_quota, coalesce(s.status, '{}') AS status
FROM devices d
LEFT JOIN device_tokens t USING (device_id)
LEFT JOIN device_status s USING (device_id)
ORDER BY d.name, d.device_id
LIMIT ?1 OFFSET ?2
