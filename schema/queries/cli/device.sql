-- Statements of cli/cmd_device.c.

-- name: device_commands
SELECT command_id AS command, kind, state, requested_by, created_realtime_ns, coalesce(finished_realtime_ns,
    created_realtime_ns) - created_realtime_ns AS took_ns, timeout_ms * 1000000 AS timeout_ns, arguments,
    result
FROM commands
WHERE device_id = ?1
ORDER BY command_id DESC
LIMIT 200
