-- Sojourn store, version 23: blocks in quarantine; findings with their sessions, devices and builds.

ALTER TABLE zombie_history RENAME TO zombie_events;

ALTER TABLE zombie_accounts ADD COLUMN emptied INTEGER NOT NULL DEFAULT 0;              -- freed blocks whose content was dropped to save memory
ALTER TABLE zombie_accounts ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0;          -- ordinary freed blocks that were kept
ALTER TABLE zombie_accounts ADD COLUMN quarantine_full INTEGER NOT NULL DEFAULT 0;      -- of them: let go because others needed the room
ALTER TABLE zombie_accounts ADD COLUMN quarantine_pressure INTEGER NOT NULL DEFAULT 0;  -- because memory was short, or on command
ALTER TABLE zombie_accounts ADD COLUMN quarantine_left INTEGER NOT NULL DEFAULT 0;      -- because the program was left, or the policy changed
ALTER TABLE zombie_accounts ADD COLUMN not_quarantined INTEGER NOT NULL DEFAULT 0;      -- freed at once: too small, too large, or in a signal handler
ALTER TABLE zombie_accounts ADD COLUMN one_in_most INTEGER NOT NULL DEFAULT 0;          -- one_in when the overhead budget let least be guarded
ALTER TABLE zombie_accounts ADD COLUMN history_pauses INTEGER NOT NULL DEFAULT 0;       -- how often it stopped the histories of objects
ALTER TABLE zombie_accounts ADD COLUMN methods_without_door INTEGER NOT NULL DEFAULT 0; -- whose code, kept by the program, is not told apart

CREATE VIEW zombie_findings AS -- zombies, with how many sessions, devices and builds of the program's own module had each
SELECT z.zombie_id, z.kind, z.class, z.selector, z.state, z.used_in, z.freed_in, z.allocated_in, z.reports,
    (SELECT count(DISTINCT r.session_id) FROM zombie_reports r WHERE r.zombie_id = z.zombie_id) AS sessions,
    (SELECT count(DISTINCT s.device_id) FROM zombie_reports r JOIN sessions s USING (session_id)
     WHERE r.zombie_id = z.zombie_id) AS devices,
    (SELECT count(DISTINCT m.build_id) FROM zombie_reports r JOIN session_modules s USING (session_id)
     JOIN modules m USING (module_id)
     WHERE r.zombie_id = z.zombie_id AND m.path = (SELECT f.module FROM zombie_frames f
         WHERE f.report_id = r.report_id AND f.is_own
         ORDER BY f.stack = 'use' DESC, f.stack = 'free' DESC, f.depth LIMIT 1)) AS builds,
    z.first_seen_realtime_ns, z.last_seen_realtime_ns, z.resolved_realtime_ns, z.note, z.fingerprint
FROM zombies z;
