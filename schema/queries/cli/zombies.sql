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

-- name: zombie_coverage
{zombie_coverage_sums}

-- name: zombies_not_asked
-- Selects a row if no session was recorded with --zombies.
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM zombie_accounts)
AND NOT EXISTS (SELECT 1 FROM zombies)

-- name: zombies_unwatched
SELECT count(*), not_watched
FROM zombie_accounts
WHERE not_watched <> ''
GROUP BY not_watched

-- name: zombies_unseen
SELECT count(*), pressure_unseen
FROM zombie_accounts
WHERE pressure_unseen <> ''
GROUP BY pressure_unseen

-- name: zombies_counts
-- row: all_findings, open_findings
SELECT count(*), count(*) FILTER (WHERE state <> 'resolved')
FROM zombie_findings
HAVING EXISTS (SELECT 1 FROM zombie_accounts)

-- name: zombies_frames
-- bind: stack text
SELECT tid, depth, function, module, offset
FROM zombie_frames
WHERE report_id = :report_id
AND stack = :stack
ORDER BY depth

-- name: zombies_object
-- bind: list text
SELECT e.value
FROM reports r, json_each(r.payload, '$.' || :list) e
WHERE r.report_id = :report_id

-- name: zombies_history
SELECT number, event, owners, tid, function, partner
FROM zombie_events
WHERE report_id = ?1
ORDER BY number
