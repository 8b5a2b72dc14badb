-- Stores devices and their sessions.

-- name: device_find
-- bind: uuid blob
-- row: device_id
SELECT device_id
FROM devices
WHERE uuid = :uuid

-- name: device_hello
-- bind: uuid blob, name text, model text, os text, machine text, agent_version text, tags text
-- bind: build text
INSERT INTO devices (uuid, name, model, os, machine, agent_version, own_tags, tags, first_seen_realtime_ns,
    last_seen_realtime_ns, build)
VALUES (:uuid, :name, :model, :os, :machine, :agent_version, :tags, :tags, :now_realtime_ns,
    :now_realtime_ns, :build)
ON CONFLICT (uuid) DO UPDATE SET name = excluded.name, model = excluded.model, os = excluded.os,
    machine = excluded.machine, agent_version = excluded.agent_version, own_tags = excluded.own_tags,
    build = excluded.build, tags = json_patch(excluded.own_tags, devices.collector_tags),
    last_seen_realtime_ns = max(last_seen_realtime_ns, excluded.last_seen_realtime_ns)

-- name: session_find
-- bind: uuid blob
-- row: session_id, started_ticks count, tick_ns_numerator count, tick_ns_denominator count, device_id
-- row: blocks count, bytes count, calls count, events count, lost_calls count, lost_events count
-- row: uncounted_from, is_quarantined, device_uuid blob, secret_digest blob, folded_paths count
-- row: folded_calls count
SELECT session_id, started_ticks, tick_ns_numerator, tick_ns_denominator, device_id, stored_blocks,
    stored_bytes, stored_calls, stored_events, lost_calls - missing_calls, lost_events - missing_events,
    aggregates_valid_before_block, quarantine_reason IS NOT NULL, (SELECT d.uuid FROM devices d
    WHERE d.device_id = sessions.device_id), secret_digest, folded_paths, folded_calls
FROM sessions
WHERE uuid = :uuid
AND state <> 'removing'

-- name: session_was_removed
-- bind: session_uuid blob
-- row: removal_id
SELECT removal_id
FROM removals
WHERE session_uuid = :session_uuid
LIMIT 1

-- name: session_is_kept
-- bind: uuid blob
-- row: stored_bytes
-- Selects nothing if the session was removed.
SELECT stored_bytes
FROM sessions
WHERE uuid = :uuid
AND session_id = :session_id
AND state <> 'removing'

-- name: session_put
-- bind: uuid blob, name text, command text, mode text, started_realtime_ns count, started_ticks count
-- bind: tick_ns_numerator count, tick_ns_denominator count, clock_name text, parent_session_id optional
-- bind: cause text, tags text, secret_digest blob
-- A device may announce a session again. Keep its name and tags, because a user may have changed them.
INSERT INTO sessions (uuid, device_id, name, command, mode, started_realtime_ns, started_ticks,
    tick_ns_numerator, tick_ns_denominator, clock_step, clock_name, parent_session_id, cause, policy_version,
    tags, secret_digest, received_realtime_ns)
VALUES (:uuid, :device_id, :name, :command, :mode, :started_realtime_ns, :started_ticks, :tick_ns_numerator,
    :tick_ns_denominator, :clock_step, :clock_name, :parent_session_id, :cause, :policy_version, :tags,
    iif(length(:secret_digest) = 32, :secret_digest, NULL), :received_realtime_ns)
ON CONFLICT (uuid) DO UPDATE SET command = excluded.command, clock_step = excluded.clock_step,
    cause = excluded.cause, parent_session_id = coalesce(parent_session_id, excluded.parent_session_id),
    policy_version = max(policy_version, excluded.policy_version)

-- name: session_totals
-- bind: blocks count, bytes count, calls count, events count, lost_calls count, lost_events count
-- bind: folded_paths count, folded_calls count
UPDATE sessions SET stored_blocks = :blocks, stored_bytes = :bytes, stored_calls = :calls,
    stored_events = :events, lost_calls = :lost_calls + missing_calls,
    lost_events = :lost_events + missing_events, aggregates_valid_before_block = NULL,
    quarantine_reason = NULL, folded_paths = :folded_paths, folded_calls = :folded_calls
WHERE session_id = :session_id

-- name: session_lost
-- bind: calls count, events count
UPDATE sessions SET lost_calls = lost_calls + :calls, lost_events = lost_events + :events
WHERE session_id = :session_id

-- name: session_receipt
UPDATE sessions SET received_realtime_ns = :realtime_ns, state = iif(state = 'lost contact', 'recording',
    state)
WHERE session_id = :session_id

-- name: session_silent_next
-- row: uuid blob, session_id
SELECT uuid, session_id
FROM sessions
WHERE state = 'recording'
AND received_realtime_ns < :before_realtime_ns
ORDER BY session_id
LIMIT 1

-- name: session_lose_contact
UPDATE sessions SET state = 'lost contact'
WHERE session_id = :session_id

-- name: missing_read
-- row: calls optional, blocks, known_to_miss, ended_ticks count
-- Selects what was sent and is neither stored nor counted as lost by the device.
SELECT sent_calls - stored_calls - (lost_calls - missing_calls), sent_blocks - stored_blocks,
    missing_calls + missing_blocks, ended_ticks
FROM sessions
WHERE session_id = :session_id
AND state NOT IN ('recording', 'removing')

-- name: missing_forget
-- bind: reason text
DELETE FROM gaps
WHERE session_id = :session_id
AND reason = :reason

-- name: missing_note
UPDATE sessions SET lost_calls = lost_calls - missing_calls + :calls,
    lost_events = lost_events - missing_events + :events, missing_calls = :calls, missing_events = :events,
    missing_blocks = :blocks
WHERE session_id = :session_id

-- name: session_stale
UPDATE sessions SET aggregates_valid_before_block = :aggregates_valid_before_block
WHERE session_id = :session_id
AND aggregates_valid_before_block IS NULL

-- name: session_stale_next
-- row: uuid blob, session_id
SELECT uuid, session_id
FROM sessions
WHERE aggregates_valid_before_block IS NOT NULL
AND session_id > :after_session_id
AND state <> 'removing'
AND (:with_quarantined OR quarantine_reason IS NULL)
ORDER BY session_id
LIMIT 1

-- name: session_quarantine
-- bind: first_block optional, reason text
UPDATE sessions SET aggregates_valid_before_block = coalesce(aggregates_valid_before_block, :first_block),
    quarantine_reason = iif(coalesce(aggregates_valid_before_block, :first_block) IS NULL, NULL, :reason)
WHERE session_id = :session_id

-- name: session_end
-- bind: state text, ended_ticks count, ended_realtime_ns count, sent_records count, sent_calls count
-- bind: device_lost_calls count, device_lost_events count, sent_blocks count, traced_cpu_ns count
-- bind: estimated_probe_ns count
UPDATE sessions SET state = :state, ended_ticks = :ended_ticks, ended_realtime_ns = :ended_realtime_ns,
    sent_records = :sent_records, sent_calls = :sent_calls, device_lost_calls = :device_lost_calls,
    device_lost_events = :device_lost_events, sent_blocks = max(:sent_blocks, coalesce(sent_blocks, 0)),
    traced_cpu_ns = :traced_cpu_ns, estimated_probe_ns = :estimated_probe_ns
WHERE session_id = :session_id

-- name: process_put
-- bind: number count, parent_number count, executable text, command text, how text, ended_ns optional
-- bind: exit_code optional, exit_signal optional, disarm_reason text
INSERT INTO processes (session_id, number, pid, parent_number, executable, command, how, started_ns,
    ended_ns, exit_code, exit_signal, core_dumped, disarm_reason)
VALUES (:session_id, :number, :pid, :parent_number, :executable, :command, :how, :started_ns, :ended_ns,
    :exit_code, :exit_signal, :core_dumped, :disarm_reason)
ON CONFLICT (session_id, number) DO UPDATE SET pid = excluded.pid, executable = iif(excluded.executable = '',
    executable, excluded.executable), command = iif(excluded.command = '', command, excluded.command),
    how = excluded.how, started_ns = excluded.started_ns, ended_ns = coalesce(excluded.ended_ns, ended_ns),
    exit_code = coalesce(excluded.exit_code, exit_code), exit_signal = coalesce(excluded.exit_signal,
    exit_signal), core_dumped = max(core_dumped, excluded.core_dumped),
    disarm_reason = iif(excluded.disarm_reason = '', disarm_reason, excluded.disarm_reason)

-- name: thread_put
-- bind: number count, process_number count, name text, ended_ns optional, dropped_calls count
-- bind: dropped_events count, cpu_ns count, allocated_bytes count, malloc_allocations count
-- bind: malloc_bytes count, malloc_frees count, malloc_freed_bytes count
-- row: thread_id
INSERT INTO threads (session_id, number, process_number, tid, name, is_main, started_ns, ended_ns,
    dropped_calls, dropped_events, waited_ns, cpu_ns, allocated_bytes, malloc_allocations, malloc_bytes,
    malloc_frees, malloc_freed_bytes)
VALUES (:session_id, :number, :process_number, :tid, :name, :is_main, :started_ns, :ended_ns, :dropped_calls,
    :dropped_events, :waited_ns, nullif(:cpu_ns, 0) - 1, nullif(:allocated_bytes, 0) - 1,
    nullif(:malloc_allocations, 0) - 1, nullif(:malloc_bytes, 0) - 1, nullif(:malloc_frees, 0) - 1,
    nullif(:malloc_freed_bytes, 0) - 1)
ON CONFLICT (session_id, number) DO UPDATE SET name = excluded.name, started_ns = excluded.started_ns,
    ended_ns = coalesce(excluded.ended_ns, ended_ns), dropped_calls = max(dropped_calls,
    excluded.dropped_calls), dropped_events = max(dropped_events, excluded.dropped_events),
    waited_ns = max(waited_ns, excluded.waited_ns), cpu_ns = coalesce(excluded.cpu_ns, cpu_ns),
    allocated_bytes = coalesce(excluded.allocated_bytes, allocated_bytes),
    malloc_allocations = coalesce(excluded.malloc_allocations, malloc_allocations),
    malloc_bytes = coalesce(excluded.malloc_bytes, malloc_bytes),
    malloc_frees = coalesce(excluded.malloc_frees, malloc_frees),
    malloc_freed_bytes = coalesce(excluded.malloc_freed_bytes, malloc_freed_bytes)
RETURNING thread_id

-- name: session_last_ticks
-- row: ticks
SELECT max((SELECT last_ticks FROM blocks WHERE stream_id = s.stream_id AND kind = 1
    ORDER BY first_event DESC LIMIT 1))
FROM streams AS s
WHERE s.session_id = :session_id

-- name: refused_note
-- bind: sender_uuid blob, reason text
INSERT INTO refused_frames (session_id, sender_uuid, frames, reason, first_realtime_ns, last_realtime_ns)
SELECT :session_id, :sender_uuid, 1, :reason, :now_realtime_ns, :now_realtime_ns
WHERE (SELECT count(*) FROM refused_frames) < 1000 OR EXISTS (SELECT 1 FROM refused_frames
    WHERE session_id = :session_id AND sender_uuid = :sender_uuid)
ON CONFLICT DO UPDATE SET frames = frames + 1, reason = excluded.reason,
    last_realtime_ns = excluded.last_realtime_ns

-- name: device_clock_add
-- bind: boot_id text, boottime_ns count, uncertainty_ns count
INSERT OR IGNORE INTO device_clocks (device_id, boot_id, boottime_ns, offset_ns, uncertainty_ns)
VALUES (:device_id, :boot_id, :boottime_ns, :offset_ns, :uncertainty_ns)
