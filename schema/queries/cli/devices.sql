-- Statements of cli/cmd_devices.c.

-- part: devices_policies
SELECT r.rule_id AS rule, r.scope, CASE r.scope WHEN 'device' THEN (SELECT name FROM devices
    WHERE device_id = CAST(r.subject AS INTEGER)) ELSE r.subject END AS subject, r.app,
    coalesce(r.document ->> 'name', '') AS policy, coalesce(r.document ->> 'mode', 'trace') AS mode,
    r.set_by, r.set_realtime_ns AS since_realtime_ns
FROM policy_rules r
WHERE r.ended_realtime_ns IS NULL

-- part: devices
-- SQLite takes `realtime_ns` from the row with the greatest event_id.
SELECT d.device_id AS id, d.name, lower(hex(d.uuid)) AS uuid, d.model, d.os, d.build, d.machine,
    d.agent_version AS version, d.tags, CASE WHEN t.device_id IS NULL THEN 'no'
    WHEN t.revoked_realtime_ns IS NOT NULL THEN 'revoked' ELSE 'yes' END AS enrolled,
    max(d.last_seen_realtime_ns, coalesce(s.polled_realtime_ns, 0)) AS last_seen_realtime_ns,
    coalesce(s.status ->> 'recording', '') AS recording, (SELECT count(*) FROM sessions
    WHERE sessions.device_id = d.device_id) AS sessions, (SELECT count(*) FROM commands c
    WHERE c.device_id = d.device_id AND c.state IN ('queued', 'sent')) AS open_commands, CASE
    WHEN k.device_id IS NOT NULL THEN 'two daemons have this identity: see sojourn doctor'
    WHEN q.device_id IS NOT NULL THEN 'its quota of ' || q.quota || ' is used up: it keeps its records until '
        || datetime(q.ends_realtime_ns / 1000000000, 'unixepoch')
    WHEN count(*) OVER (PARTITION BY d.name) > 1 THEN 'another device has this name: use id or uuid'
    ELSE coalesce('taken over ' || datetime(e.realtime_ns / 1000000000, 'unixepoch'), '') END AS note
FROM devices d
LEFT JOIN device_tokens t USING (device_id)
LEFT JOIN device_status s USING (device_id)
LEFT JOIN copied_devices k USING (device_id)
LEFT JOIN devices_over_quota q USING (device_id)
LEFT JOIN (SELECT device_id, max(event_id), realtime_ns FROM token_events WHERE what = 'taken over'
    GROUP BY device_id) e USING (device_id)
ORDER BY d.name, d.device_id

-- name: devices_data
-- The cost grows with the number of devices plus the number of token events, not with their product.
{devices}

-- name: devices_table
SELECT id, name, substr(uuid, 1, 8) AS uuid, model, os, build, machine, version, tags, enrolled,
    datetime(last_seen_realtime_ns / 1000000000, 'unixepoch') AS last_seen, recording, sessions,
    open_commands, note
FROM ({devices})
ORDER BY name, id

-- name: devices_policies
{devices_policies}
ORDER BY rule

-- name: devices_policies_table
SELECT rule, scope, subject, app, policy, mode, set_by, datetime(since_realtime_ns / 1000000000,
    'unixepoch') AS since
FROM ({devices_policies})
ORDER BY rule
