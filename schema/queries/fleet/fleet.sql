-- Statements of fleet/fleet.c.

-- name: fleet_device_put
INSERT INTO devices (uuid, name, model, os, machine, agent_version, build, own_tags, tags,
    first_seen_realtime_ns, last_seen_realtime_ns)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?9)
ON CONFLICT (uuid) DO UPDATE SET name = excluded.name, model = excluded.model, os = excluded.os,
    machine = excluded.machine, agent_version = excluded.agent_version, build = excluded.build,
    own_tags = excluded.own_tags, tags = json_patch(excluded.own_tags, devices.collector_tags),
    last_seen_realtime_ns = excluded.last_seen_realtime_ns
RETURNING device_id

-- name: fleet_invitation
SELECT e.enrolment_id, t.device_id IS NOT NULL, iif(e.for_device_id IS NULL, t.device_id IS NULL,
    e.for_device_id IS d.device_id)
FROM enrolment_tokens e
LEFT JOIN devices d ON d.uuid = ?3
LEFT JOIN device_tokens t ON t.device_id = d.device_id
WHERE e.token_hash = ?1
AND e.used_realtime_ns IS NULL
AND e.expires_realtime_ns > ?2

-- name: fleet_token_put
INSERT INTO device_tokens (device_id, token_hash, enrolled_realtime_ns)
VALUES (?1, ?2, ?3)
ON CONFLICT (device_id) DO UPDATE SET token_hash = excluded.token_hash, revoked_realtime_ns = NULL,
    enrolled_realtime_ns = excluded.enrolled_realtime_ns
