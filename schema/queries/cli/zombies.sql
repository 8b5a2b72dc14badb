-- Statements of cli/cmd_zombies.c.

-- part: zombies_list(last_seen)
SELECT z.zombie_id AS id, z.kind, trim(z.class || ' ' || z.selector) AS message, z.state, z.reports,
    z.sessions, z.devices, z.builds, {last_seen}, z.note, z.allocated_in, z.freed_in, z.used_in
FROM zombie_findings z
WHERE ?1 OR z.state <> 'resolved'
ORDER BY z.last_seen_realtime_ns DESC

-- name: zombies_data
{zombies_list(z.last_seen_realtime_ns)}

-- name: zombies_table
{zombies_list(datetime(z.last_seen_realtime_ns / 1000000000, 'unixepoch') AS last_seen)}

-- name: zombies_show
SELECT z.kind, z.state, z.reports, r.report_id, r.thread_name, r.access, r.size, r.offset, r.session_id,
    z.note, z.class, z.selector
FROM zombies z
JOIN zombie_reports r USING (zombie_id)
WHERE z.zombie_id = ?1
ORDER BY r.report_id DESC
LIMIT 1
