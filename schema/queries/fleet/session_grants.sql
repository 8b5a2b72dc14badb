-- Statements of fleet/session_grants.c.

-- name: session_grants_held
SELECT device_id, max(event_id) AS pass, d.uuid, t.token_hash
FROM token_events
JOIN device_tokens t USING (device_id)
JOIN devices d USING (device_id)
WHERE revoked_realtime_ns IS NULL
AND length(d.uuid) = 16
AND length(t.token_hash) = 32
GROUP BY device_id
ORDER BY device_id
