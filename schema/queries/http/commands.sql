-- Statements of http/route_commands.c.

-- part: commands_command_select
SELECT c.command_id AS id, c.device_id, d.name AS device_name, c.kind, c.arguments, c.state, c.requested_by,
    c.timeout_ms, c.created_realtime_ns, c.sent_realtime_ns, c.finished_realtime_ns, c.result, c.file_bytes
FROM commands c
JOIN devices d USING (device_id)

-- name: commands_list
{commands_command_select}
WHERE c.command_id < ?1
AND (?2 = 0 OR c.device_id = ?2)
ORDER BY c.command_id DESC
LIMIT ?3

-- name: commands_show
{commands_command_select}
WHERE c.command_id = ?1
