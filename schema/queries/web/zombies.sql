-- Findings about freed memory, and other heap errors.

-- name: findings
-- row: zombie_id, kind text, state text, class text, selector text, used_in text, freed_in text, allocated_in text, reports
-- row: sessions, devices, first_seen text, last_seen text, note optional_text
-- The class of the freed object is '' if there is none.
SELECT z.zombie_id, z.kind, z.state, z.class, z.selector, z.used_in, z.freed_in, z.allocated_in, z.reports,
       count(DISTINCT r.session_id) AS sessions, count(DISTINCT s.device_id) AS devices,
       CAST(z.first_seen_realtime_ns AS TEXT) AS first_seen, CAST(z.last_seen_realtime_ns AS TEXT) AS last_seen, z.note
FROM zombies z LEFT JOIN zombie_reports r USING (zombie_id) LEFT JOIN sessions s USING (session_id)
GROUP BY z.zombie_id ORDER BY z.state = 'resolved', z.last_seen_realtime_ns DESC

-- part: latest_report
(SELECT max(report_id) FROM zombie_reports WHERE zombie_id = :finding)

-- name: finding_frames
-- row: stack text, depth, tid, function text, module text, offset, is_own
SELECT f.stack, f.depth, f.tid, f.function, f.module, f.offset, f.is_own FROM zombie_frames f
WHERE f.report_id = {latest_report} ORDER BY f.stack, f.depth

-- name: finding_reports
-- row: session_id, command text, device text, at_ns, thread_name text, access optional_text, size, offset optional
SELECT r.session_id, s.command, d.name AS device, r.at_ns, r.thread_name, r.access, r.size, r.offset
FROM zombie_reports r JOIN sessions s USING (session_id) JOIN devices d USING (device_id)
WHERE r.zombie_id = :finding ORDER BY r.report_id DESC LIMIT 50

-- name: finding_history
-- row: number, event text, owners, tid, function text
-- Earlier events of the object, if the policy keeps them.
SELECT e.number, e.event, e.owners, e.tid, e.function FROM zombie_events e
WHERE e.report_id = {latest_report} ORDER BY e.number

-- name: watched_blocks
-- row: session_id, command text, allocations real, guarded real, not_sampled real, no_block real, over_memory real
-- row: bad_size real, refused real, recycled real
-- How much of the heap was watched: findings say nothing about the rest. not_sampled is an estimate.
SELECT c.session_id, s.command, total(c.allocations) AS allocations, total(c.guarded) AS guarded,
       total(c.not_sampled) AS not_sampled, total(c.no_block) AS no_block, total(c.over_memory) AS over_memory,
       total(c.bad_size) AS bad_size, total(c.refused) AS refused, total(c.recycled) AS recycled
FROM zombie_coverage c JOIN sessions s USING (session_id) GROUP BY c.session_id ORDER BY c.session_id DESC LIMIT 50
