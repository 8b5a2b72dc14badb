-- Commands whose state at the cluster is not the one here (forward_commands.c).

-- name: owed_commands
-- bind: target text
-- row: command_id, content text, at
-- At most :most rows. A command that was removed here has an empty content.
SELECT command_id, content, at FROM (SELECT c.command_id, printf('%s %d %d %d %d', c.state,
    coalesce(c.sent_realtime_ns, 0), coalesce(c.finished_realtime_ns, 0), length(c.arguments),
    length(c.result)) AS content, f.content AS given, c.created_realtime_ns AS at FROM commands AS c LEFT
    JOIN forwarded_commands AS f ON f.target = :target AND f.command_id = c.command_id) WHERE content IS NOT
    given UNION ALL SELECT f.command_id, '', 0 FROM forwarded_commands AS f WHERE f.target = :target AND
    f.content <> '' AND NOT EXISTS (SELECT 1 FROM commands AS c WHERE c.command_id = f.command_id) LIMIT :most
