-- Statements of cli/cmd_flame.c.

-- name: flame_totals
SELECT (SELECT coalesce(sum(total_ns), 0) FROM flame(?1, ?11, ?12, ?13) WHERE depth = 0),
    (SELECT coalesce(max(depth), 0) + 1 FROM flame(?1, ?11, ?12, ?13)),
    'Session ' || s.session_id || ': ' || iif(s.name = '', s.command, s.name) || ' on ' || d.name
FROM sessions AS s
JOIN devices AS d USING (device_id)
WHERE s.session_id = ?1

-- name: flame_rows
SELECT name, depth, left_ns, total_ns, self_ns, calls, {is_estimate(?1, t.function_id)},
    {is_self_estimate(?1, t.function_id)}, open_calls
FROM flame(?1, ?11, ?12, ?13) AS t
