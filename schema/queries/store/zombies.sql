-- Stores the findings of freed memory.

-- name: zombie_put
-- bind: fingerprint text, kind text, used_in text, freed_in text, allocated_in text, class text
-- bind: selector text
INSERT INTO zombies (fingerprint, kind, used_in, freed_in, allocated_in, reports, first_seen_realtime_ns,
    last_seen_realtime_ns, state, class, selector)
SELECT :fingerprint, :kind, :used_in, :freed_in, :allocated_in, 1, started_realtime_ns + :at_ns,
    started_realtime_ns + :at_ns, 'open', :class, :selector
FROM sessions
WHERE session_id = :session_id
ON CONFLICT (fingerprint) DO UPDATE SET reports = reports + 1,
    first_seen_realtime_ns = min(first_seen_realtime_ns, excluded.first_seen_realtime_ns),
    last_seen_realtime_ns = max(last_seen_realtime_ns, excluded.last_seen_realtime_ns), state = CASE
    WHEN state = 'resolved' AND excluded.last_seen_realtime_ns > resolved_realtime_ns THEN 'reopened'
    ELSE state END

-- name: zombie_find
-- bind: fingerprint text
-- row: zombie_id
SELECT zombie_id
FROM zombies
WHERE fingerprint = :fingerprint

-- name: zombie_report_add
-- bind: thread_name text, access text
INSERT INTO zombie_reports (report_id, zombie_id, session_id, at_ns, thread_name, tid, access, size, offset)
VALUES (:report_id, :zombie_id, :session_id, :at_ns, :thread_name, :tid, :access, :size, :offset)

-- name: zombie_report_known
-- row: is_known
SELECT 1
FROM zombie_reports
WHERE session_id = :session_id
AND at_ns = :at_ns
AND tid = :tid
AND size = :size
AND offset = :offset

-- name: report_remove
DELETE FROM reports
WHERE report_id = :report_id

-- name: zombie_frame_add
-- bind: stack text, function text, module text
INSERT INTO zombie_frames (report_id, stack, depth, tid, function, module, offset, is_own)
VALUES (:report_id, :stack, :depth, :tid, :function, :module, :offset, :is_own)

-- name: zombie_account_known
-- bind: process_number optional
-- row: is_known
SELECT 1
FROM zombie_accounts
WHERE session_id = :session_id
AND process_number = :process_number

-- name: zombie_account_add
-- bind: process_number optional, not_watched text, pressure_unseen text
INSERT INTO zombie_accounts (report_id, session_id, process_number, not_watched, one_in, guarded, released,
    evicted, refused_size, refused_full, refused_memory, uses, suppressed, kept, kept_full, kept_old,
    kept_pressure, kept_left, kept_used, not_kept, emptied, delayed, delayed_full,
    delayed_pressure, delayed_left, not_delayed, methods_without_trampoline, one_in_most, history_pauses,
    pressure_unseen, delayed_one_in_most, refused_limit, not_sampled)
VALUES (:report_id, :session_id, :process_number, :not_watched, :one_in, :guarded, :released, :evicted,
    :refused_size, :refused_full, :refused_memory, :uses, :suppressed, :kept, :kept_full, :kept_old,
    :kept_pressure, :kept_left, :kept_used, :not_kept, :emptied, :delayed, :delayed_full,
    :delayed_pressure, :delayed_left, :not_delayed, :methods_without_trampoline, :one_in_most,
    :history_pauses, :pressure_unseen, :delayed_one_in_most, :refused_limit, :not_sampled)

-- name: zombie_event_add
-- bind: event text, function text, partner optional
INSERT INTO zombie_events (report_id, number, event, owners, tid, ticks, function, partner)
VALUES (:report_id, :number, :event, :owners, :tid, :ticks, :function, :partner)
